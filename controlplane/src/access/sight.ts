/**
 * Which records a caller with a scope sees.
 *
 * Invariants:
 * 1. Every collection has a rule, and what has none is seen by nobody who has a scope.
 * 2. A host is in sight by its own record. What belongs to a host is in sight with the host of
 *    that very uid; one that was removed takes its certificates out of sight.
 * 3. What concerns several hosts is in sight when all of them are.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/api';
import { type Entry, type StateStore, storeKey } from '@rackwright/store';
import { answered } from '../records/index.ts';
import { includes, includesRack, placeOf, type Scope } from './principal.ts';

/** A record as a rule looks at it. */
export type Looked = Pick<Entry, 'key' | 'value'>;

/** The hosts in sight, by id; loaded once, however many records are judged by it. */
export type HostsInSight = () => Promise<ReadonlyMap<string, wire.HostRecord>>;

type Rule = (scope: Scope, looked: Looked, hosts: HostsInSight) => boolean | Promise<boolean>;

const always: Rule = () => true;

/** By the first segment of the key (invariant 1). */
const rules: Readonly<Record<string, Rule>> = {
  hosts: (scope, { value }) => includes(scope, placeOf(hostOf(value).host)),
  racks: rackInSight,
  workflows: async (_scope, { key }, hosts) => (await hosts()).has(segment(key, 1)),
  erasureCertificates: async (_scope, { key, value }, hosts) => {
    const { host } = fromBinary(wire.CertificateRecordSchema, value);
    const uid = (await hosts()).get(host.replace('hosts/', ''))?.host?.uid;
    return uid !== undefined && segment(key, 1).startsWith(`${uid}-`);
  },
  abandonedResources: (scope, { value }) =>
    includesRack(scope, fromBinary(wire.AbandonedRecordSchema, value).resource?.rack ?? ''),
  discoveredMachines: (scope, { value }) =>
    includesRack(scope, fromBinary(wire.DiscoveredMachineRecordSchema, value).machine?.rack ?? ''),
  expectedHosts: (scope, { value }) => {
    const line = fromBinary(wire.ExpectedHostRecordSchema, value).expectedHost;
    return includes(scope, { rack: line?.spec?.rack ?? '', pool: line?.labels['pool'] ?? '' });
  },
  workflowBatches: async (_scope, { value }, hosts) => {
    const batch = fromBinary(wire.WorkflowBatchRecordSchema, value).workflowBatch;
    const seen = await hosts();
    const rows = batch?.status?.hosts ?? [];
    return rows.length > 0 && rows.every(({ host }) => seen.has(host.replace('hosts/', '')));
  },
  // One that holds nobody yet may come to hold anybody.
  pools: async (_scope, { value }, hosts) => {
    const { members } = fromBinary(wire.PoolRecordSchema, value);
    const seen = await hosts();
    const isSeen = ({ host }: wire.PoolMember) => seen.has(host.replace('hosts/', ''));
    return members.length > 0 && members.every(isSeen);
  },
  credentials: async (_scope, { key }, hosts) => {
    const name = `credentials/${segment(key, 1)}`;
    const seen = [...(await hosts()).values()];
    return seen.some(({ host }) => host?.spec?.bmc?.credential === name);
  },
  // The same for everybody.
  templates: always,
  fleet: always,
  // Found only by the uid in the record of a host, or a pool, that is in sight.
  facts: always,
  runs: always,
  stepOutputs: always,
  plans: always,
  deployments: always,
};

/** Whether a caller with this scope sees the record. */
export async function isInSight(
  scope: Scope,
  looked: Looked,
  hosts: HostsInSight,
): Promise<boolean> {
  const rule = rules[segment(looked.key, 0)];
  return rule !== undefined && (await rule(scope, looked, hosts));
}

/** The hosts of the store that are in the scope, read when they are first asked for. */
export function hostsInSight(store: StateStore, scope: Scope): HostsInSight {
  let loaded: Promise<ReadonlyMap<string, wire.HostRecord>> | undefined;
  return () => {
    loaded ??= loadHosts(store, scope);
    return loaded;
  };
}

/**
 * The host of this id as it is, or was last before it was removed: who asks again is answered
 * again. Undefined when it never was, or is out of scope.
 */
export async function hostInScope(
  store: StateStore,
  scope: Scope,
  hostId: string,
): Promise<wire.HostRecord | undefined> {
  const key = storeKey('hosts', hostId);
  const found = await answered(store.get(key));
  const last =
    found.kind === 'found'
      ? found
      : (await answered(store.history(key))).findLast(({ kind }) => kind === 'put');
  if (last === undefined || !('value' in last)) return undefined;
  const record = hostOf(last.value);
  return includes(scope, placeOf(record.host)) ? record : undefined;
}

async function loadHosts(
  store: StateStore,
  scope: Scope,
): Promise<ReadonlyMap<string, wire.HostRecord>> {
  const { entries } = await answered(store.list('hosts'));
  const records = entries.map(({ key, value }) => [segment(key, 1), hostOf(value)] as const);
  return new Map(records.filter(([, { host }]) => includes(scope, placeOf(host))));
}

/** A scope of pools sees the racks in which it has hosts. */
async function rackInSight(scope: Scope, { key }: Looked, hosts: HostsInSight): Promise<boolean> {
  const name = `racks/${segment(key, 1)}`;
  if (scope.racks.length > 0) return scope.racks.includes(name);
  return [...(await hosts()).values()].some(({ host }) => host?.spec?.rack === name);
}

function hostOf(value: Uint8Array): wire.HostRecord {
  return fromBinary(wire.HostRecordSchema, value);
}

function segment(key: string, index: number): string {
  return key.split('.')[index] ?? '';
}
