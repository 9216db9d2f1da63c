/**
 * Two separate sets of resources in one control plane, "aa" and "zz": a rack, a pool and everything
 * else of each. No response to a caller with the scope "aa" may contain "zz".
 */
import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  AbandonedResourceSchema,
  DiscoveredMachineSchema,
  HostGoal,
  HostSpecSchema,
  HostState,
  type Role,
  store as wire,
} from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { storeKey } from '@rackwright/store';
import { preparedHost, putHost } from './prepared.fixture.ts';
import type { Fixture } from './rpc.fixture.ts';

export type Side = 'aa' | 'zz';

export interface Names {
  readonly rack: string;
  readonly pool: string;
  readonly host: string;
  readonly credential: string;
  readonly machine: string;
  readonly line: string;
  readonly abandoned: string;
  readonly certificate: string;
  readonly document: string;
  readonly workflow: string;
  readonly batch: string;
  readonly plan: string;
  readonly imagePool: string;
}

const template = 'rackwright-diagnose';

/** Creates one of the sets, with the first token. */
export async function addSide(fixture: Fixture, side: Side): Promise<Names> {
  const { racks, credentials, discovery, workflows, workflowBatches, plans } = fixture;
  const rack = `racks/${side}-rack`;
  const credential = `credentials/${side}-credential`;
  const spec = specOf(side);
  const labels = { pool: `${side}-pool` };
  await racks.createRack({ rackId: `${side}-rack` });
  await credentials.createCredential({
    credentialId: `${side}-credential`,
    credential: {
      username: `${side}-user`,
      password: 'a password',
      bmcNetworks: [side === 'aa' ? '192.0.1.0/24' : '192.0.2.0/24'],
      racks: [rack],
    },
  });
  const record = preparedHost(side === 'aa' ? 1 : 2, {
    state: HostState.MANAGEABLE,
    kind: undefined,
  });
  const uid = `${side}-uid`;
  const host = `hosts/${side}-host`;
  if (record.host === undefined) throw new Error('no host');
  Object.assign(record.host, { name: host, uid, labels });
  record.host.spec = create(HostSpecSchema, { ...spec, goal: HostGoal.MANAGEABLE });
  if (record.host.spec.bmc !== undefined) record.verifiedBmc = record.host.spec.bmc;
  await putHost(fixture.store, record);
  const line = {
    spec: { ...specOf(side, 9), bootMacs: [] },
    labels,
    match: { serial: `${side}-7XK2P13` },
  };
  await discovery.createExpectedHost({ expectedHostId: `${side}-line`, expectedHost: line });
  const plan = await plans.planRun({ parent: host, run: { case: 'clean', value: {} } });
  await workflows.createWorkflow({ parent: host, workflowId: template, workflow: {} });
  await workflowBatches.createWorkflowBatch({
    workflowBatchId: `${side}-batch`,
    workflowBatch: { spec: { template: `templates/${template}`, hosts: { names: [host] } } },
  });
  await putRecords(fixture, side, uid);
  return {
    ...{ rack, host, credential, pool: `${side}-pool` },
    machine: `discoveredMachines/${side}-machine`,
    line: `expectedHosts/${side}-line`,
    abandoned: `abandonedResources/${side}-gone`,
    certificate: `erasureCertificates/${uid}-1-2-3-1-0123abcd`,
    document: `erasureDocuments/${uid}-1-2-3-manifest`,
    workflow: `${host}/workflows/${template}`,
    batch: `workflowBatches/${side}-batch`,
    plan: plan.name,
    imagePool: `pools/${side}-images`,
  };
}

/** Records that the API creates only with an agent. */
async function putRecords({ store }: Fixture, side: Side, uid: string): Promise<void> {
  const rack = `racks/${side}-rack`;
  const machine = create(DiscoveredMachineSchema, {
    name: `discoveredMachines/${side}-machine`,
    rack,
  });
  const record = create(wire.DiscoveredMachineRecordSchema, { machine });
  const bytes = toBinary(wire.DiscoveredMachineRecordSchema, record);
  await store.put(storeKey('discoveredMachines', `${side}-machine`), bytes, 'absent');
  const resource = create(AbandonedResourceSchema, {
    name: `abandonedResources/${side}-gone`,
    host: `hosts/${side}-gone`,
    rack,
  });
  const left = create(wire.AbandonedRecordSchema, { resource });
  const leftBytes = toBinary(wire.AbandonedRecordSchema, left);
  await store.put(storeKey('abandonedResources', `${side}-gone`), leftBytes, 'absent');
  const host = `hosts/${side}-host`;
  const pool = create(wire.PoolRecordSchema, {
    pool: {
      ...{ name: `pools/${side}-images`, uid: `${side}-pool-uid` },
      spec: { hosts: { names: [host] }, image: `${side}-registry.example/os:1` },
    },
    members: [{ host, hostUid: uid }],
  });
  const poolBytes = toBinary(wire.PoolRecordSchema, pool);
  await store.put(storeKey('pools', `${side}-images`), poolBytes, 'absent');
  const certificate = create(wire.CertificateRecordSchema, {
    host,
    statement: new TextEncoder().encode(`{"of":"${side}"}`),
  });
  const signed = toBinary(wire.CertificateRecordSchema, certificate);
  await store.put(storeKey('erasureCertificates', uid, '1-2-3-1-0123abcd'), signed, 'absent');
  const owner = storeKey('erasureOwners', `${side}-host`, uid);
  await store.put(owner, new Uint8Array(), 'absent');
  const name = `erasureDocuments/${uid}-1-2-3-manifest`;
  const document = create(wire.ErasureDocumentRecordSchema, {
    document: { name, host, hostUid: uid },
  });
  const documentBytes = toBinary(wire.ErasureDocumentRecordSchema, document);
  await store.put(storeKey('erasureDocuments', uid, '1-2-3-manifest'), documentBytes, 'absent');
}

/** A spec in one of the sets. */
export function specOf(side: Side, n = 1) {
  const [octet, hex] = side === 'aa' ? [1, 'aa'] : [2, 'bb'];
  return {
    rack: `racks/${side}-rack`,
    bmc: { address: `192.0.${octet}.${n}`, credential: `credentials/${side}-credential` },
    bootMacs: [`52:54:00:00:${hex}:0${n}`],
  };
}

/** A token for these racks and pools; its secret. */
export async function tokenFor(
  { access }: Fixture,
  tokenId: string,
  role: Role,
  scope: { readonly racks?: string[]; readonly pools?: string[] } = {},
): Promise<string> {
  const expireTime = timestampFromMs(nodeClock().nowMs() + 3_600_000);
  const made = await access.createToken({ tokenId, token: { role, expireTime, scope } });
  return made.secret;
}
