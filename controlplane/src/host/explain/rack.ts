/** Explains a rack: whether its agent works, and what its hosts wait for. Pure. */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  CauseSchema,
  counted,
  type DuplicateAgent,
  duplicateAgentOf,
  type Explanation,
  ExplanationSchema,
  type HostStatus,
  isGivenUp,
  type RackFault,
  type store,
} from '@rackwright/messages';
import { idOf } from '../../records/index.ts';
import { activeRun } from '../pass/pass.ts';
import { rackBrakes } from './brakes.ts';
import { troubleOf } from './power.ts';
import { rackFaultAdvice } from './rack-faults.ts';

/** The most hosts that are named; the rest is counted. */
const namedMax = 5;

export function explainRack(
  record: store.RackRecord,
  agentConnected: boolean,
  hosts: readonly store.HostRecord[],
  /** About certificate authorities and unknown machines, a line each. */
  remarks: readonly string[] = [],
): Explanation {
  const name = record.rack?.name ?? '';
  const id = idOf(name);
  const status = record.rack?.status;
  const brakes = rackBrakes(record);
  const faults = status?.faults ?? [];
  const causes = [
    ...agentCauses(record, agentConnected),
    ...brakes.causes,
    ...forgetCauses(record),
    ...faults.map(faultCause),
    ...hostCauses(hosts),
    ...remarks.map((text) => ({ text })),
  ];
  const joined = record.agentPublicKey.length > 0;
  return create(ExplanationSchema, {
    subject: name,
    headline: headline(joined, agentConnected, hosts.length),
    causes: causes.map((cause) => create(CauseSchema, cause)),
    ...blockerOf(record, agentConnected),
    unblock: [
      ...unblock(id, joined, agentConnected, duplicateAgentOf(status)),
      ...brakes.unblock,
      ...new Set(faults.flatMap((fault) => rackFaultAdvice(fault, name))),
    ],
    lastEvidence: status?.agentVersion ? `the agent said it is version ${status.agentVersion}` : '',
  });
}

function headline(joined: boolean, connected: boolean, hosts: number): string {
  const count = counted(hosts, 'host');
  if (connected) return `its agent is connected; ${count}`;
  return joined ? `its agent is not connected; ${count}` : `no agent has joined yet; ${count}`;
}

/** What blocks all of its hosts; the causes name what blocks a single one. */
function blockerOf(
  { rack }: store.RackRecord,
  connected: boolean,
): { readonly blocker: string; readonly since?: Timestamp } {
  const { lastSeenTime, freeze, restoredStore } = rack?.status ?? {};
  const line = (blocker: string, since: Timestamp | undefined) =>
    since === undefined ? { blocker } : { blocker, since };
  if (!connected) return line('the agent of the rack', lastSeenTime);
  if (restoredStore !== undefined) return line('the restored store', restoredStore.since);
  return freeze === undefined ? { blocker: '' } : line('the freeze', freeze.at);
}

function unblock(
  id: string,
  joined: boolean,
  connected: boolean,
  duplicate: DuplicateAgent | undefined,
): string[] {
  if (duplicate !== undefined) return ['stop one of the two agents that share this identity'];
  if (connected) return [];
  if (!joined)
    return [
      `make a token: rackwright rack join-token ${id}`,
      'on the rack’s machine: rackwright-agent join ADDRESS TOKEN --config FILE',
    ];
  return [
    'start the agent again: rackwright-agent run --config FILE',
    'hosts go on where they were',
  ];
}

interface Cause {
  readonly text: string;
  readonly since?: Timestamp;
}

function agentCauses(record: store.RackRecord, connected: boolean): Cause[] {
  const duplicate = duplicateAgentOf(record.rack?.status);
  const causes: Cause[] = duplicate === undefined ? [] : [{ text: duplicate.text }];
  causes.push(...revokedCauses(record));
  if (connected || record.agentPublicKey.length === 0) return causes;
  const since = record.rack?.status?.lastSeenTime;
  const text = 'known hosts still boot and running steps finish; nothing destructive begins';
  return [...causes, since === undefined ? { text } : { text, since }];
}

function faultCause({ message, since }: RackFault): Cause {
  return since === undefined ? { text: message } : { text: message, since };
}

/** A rack whose agent's key was revoked, until another agent has enrolled. */
function revokedCauses({ agentPublicKey, rack }: store.RackRecord): Cause[] {
  const { lastRevoked } = rack?.status ?? {};
  if (agentPublicKey.length > 0 || lastRevoked === undefined) return [];
  const { by, reason, time } = lastRevoked;
  const text = `the key of its agent was revoked by ${by}: ${reason}`;
  return [time === undefined ? { text } : { text, since: time }];
}

/** Removed hosts that the agent has not forgotten. */
function forgetCauses({ tombstones }: store.RackRecord): Cause[] {
  if (tombstones.length === 0) return [];
  const text = 'the agent has still to forget hosts removed by force (rackwright abandoned list)';
  return [{ text: `${text}: ${named(tombstones)}` }];
}

/** Hosts that wait for the same thing share a line. */
function hostCauses(hosts: readonly store.HostRecord[]): Cause[] {
  const byReason = new Map<string, { readonly names: string[]; since: Timestamp | undefined }>();
  for (const { host } of hosts) {
    if (host?.status === undefined) continue;
    const reason = reasonOf(host.status);
    if (reason === undefined) continue;
    const same = byReason.get(reason) ?? { names: [], since: undefined };
    same.names.push(idOf(host.name));
    same.since = earlier(same.since, activeRun(host.status)?.waiting?.since);
    byReason.set(reason, same);
  }
  return [...byReason].map(([reason, { names, since }]) => {
    const text = `${named(names)}: ${reason}`;
    return since === undefined ? { text } : { text, since };
  });
}

function earlier(one: Timestamp | undefined, other: Timestamp | undefined): Timestamp | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return timestampMs(one) <= timestampMs(other) ? one : other;
}

function reasonOf(status: HostStatus): string | undefined {
  if (isGivenUp(status.backoff)) return `needs a person: ${status.backoff?.givenUpReason}`;
  const waiting = activeRun(status)?.waiting?.message;
  return waiting === undefined ? troubleOf(status) : `waits: ${waiting}`;
}

function named(names: readonly string[]): string {
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
  return `${names.slice(0, namedMax).join(', ')}${more}`;
}
