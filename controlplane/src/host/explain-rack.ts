/** Explains a rack: whether its agent works, and what its hosts wait for. Pure. */
import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import { CauseSchema, type Explanation, ExplanationSchema, type store } from '@rackwright/api';
import { activeRun } from './turn.ts';

/** Hosts that are named, at most; the rest is counted. */
const namedMax = 5;

export function explainRack(
  record: store.RackRecord,
  agentConnected: boolean,
  hosts: readonly store.HostRecord[],
): Explanation {
  const name = record.rack?.name ?? '';
  const id = name.replace(/^racks\//, '');
  const status = record.rack?.status;
  const causes = [...agentCauses(record, agentConnected), ...hostCauses(hosts)];
  const joined = record.agentPublicKey.length > 0;
  return create(ExplanationSchema, {
    subject: name,
    headline: headline(joined, agentConnected, hosts.length),
    causes: causes.map((cause) => create(CauseSchema, cause)),
    blocker: agentConnected ? '' : 'the agent of the rack',
    ...(status?.lastSeenTime === undefined || agentConnected ? {} : { since: status.lastSeenTime }),
    unblock: unblock(id, joined, agentConnected, status?.duplicateAgent ?? ''),
    lastEvidence: status?.agentVersion ? `the agent said it is version ${status.agentVersion}` : '',
  });
}

function headline(joined: boolean, connected: boolean, hosts: number): string {
  const count = `${hosts} ${hosts === 1 ? 'host' : 'hosts'}`;
  if (connected) return `its agent is connected; ${count}`;
  return joined ? `its agent is not connected; ${count}` : `no agent has joined yet; ${count}`;
}

function unblock(id: string, joined: boolean, connected: boolean, duplicate: string): string[] {
  if (duplicate !== '') return ['stop one of the two agents that share this identity'];
  if (connected) return [];
  if (!joined)
    return [`rackwright rack join-token ${id}, then rackwright-agent join ADDRESS TOKEN`];
  return ['start the agent again (rackwright-agent run); hosts go on where they were'];
}

interface Told {
  readonly text: string;
  readonly since?: Timestamp;
}

function agentCauses(record: store.RackRecord, connected: boolean): Told[] {
  const duplicate = record.rack?.status?.duplicateAgent ?? '';
  const causes: Told[] = duplicate === '' ? [] : [{ text: duplicate }];
  if (connected || record.agentPublicKey.length === 0) return causes;
  const since = record.rack?.status?.lastSeenTime;
  const text = 'known hosts still boot and running steps finish; nothing destructive begins';
  return [...causes, since === undefined ? { text } : { text, since }];
}

function hostCauses(hosts: readonly store.HostRecord[]): Told[] {
  const waiting = hosts.flatMap((host) => {
    const run = host.host?.status === undefined ? undefined : activeRun(host.host.status);
    const text = run?.waiting?.message;
    return text === undefined ? [] : [`${host.host?.name} waits: ${text}`];
  });
  const givenUp = hosts.flatMap((host) => {
    const reason = host.host?.status?.backoff?.givenUpReason ?? '';
    return reason === '' ? [] : [`${host.host?.name} needs a person: ${reason}`];
  });
  const all = [...givenUp, ...waiting];
  const more = all.length > namedMax ? [`and ${all.length - namedMax} more`] : [];
  return [...all.slice(0, namedMax), ...more].map((text) => ({ text }));
}
