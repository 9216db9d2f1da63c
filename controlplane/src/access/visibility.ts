/**
 * Which records a caller with a scope sees.
 *
 * Invariants:
 * 1. Every collection has a rule; a record without a rule is hidden from every caller with a scope.
 * 2. The visibility of a host follows from its own record. A record that belongs to a host is
 *    visible with the host of the same uid. When a host is removed, its certificates are hidden.
 * 3. A record about several hosts is visible when all of them are.
 */
import { fromBinary } from '@bufbuild/protobuf';
import { type Host, type HostId, store as wire } from '@rackwright/messages';
import { type Entry, type StateStore, StoreError, storeKey } from '@rackwright/store';
import { idOf, orUnavailable } from '../records/index.ts';
import type { HostLocations, LocationField } from './host-locations.ts';
import { includesRack, isInScope, locationOf, type Scope } from './principal.ts';

/** A record, as a rule reads it. */
export type JudgedRecord = Pick<Entry, 'key' | 'value'>;

/** The visible hosts, for one call or one change; each host is read at most once. */
export interface VisibleHosts {
  /** The host of this id, by its own record; undefined: it is hidden or does not exist. */
  get(hostId: HostId): Promise<Pick<Host, 'uid'> | undefined>;
  /** Whether any of them has this: "racks/RACK" or "credentials/CREDENTIAL". */
  some(field: LocationField, name: string): boolean;
}

type Rule = (scope: Scope, judged: JudgedRecord, hosts: VisibleHosts) => boolean | Promise<boolean>;

const always: Rule = () => true;

/** By the first segment of the key (invariant 1). */
const rules: Readonly<Record<string, Rule>> = {
  hosts: (scope, { value }) => hostWithin(scope, value) !== undefined,
  racks: isRackVisible,
  workflows: async (_scope, { key }, hosts) => (await hosts.get(segment(key, 1))) !== undefined,
  erasureCertificates: async (_scope, { key, value }, hosts) => {
    const { host } = fromBinary(wire.CertificateRecordSchema, value);
    const uid = (await hosts.get(idOf(host)))?.uid;
    return uid !== undefined && segment(key, 1) === uid;
  },
  erasureDocuments: async (_scope, { key, value }, hosts) => {
    const { document } = fromBinary(wire.ErasureDocumentRecordSchema, value);
    const uid = (await hosts.get(idOf(document?.host)))?.uid;
    return uid !== undefined && segment(key, 1) === uid;
  },
  abandonedResources: (scope, { value }) =>
    includesRack(scope, fromBinary(wire.AbandonedRecordSchema, value).resource?.rack ?? ''),
  discoveredMachines: (scope, { value }) =>
    includesRack(scope, fromBinary(wire.DiscoveredMachineRecordSchema, value).machine?.rack ?? ''),
  expectedHosts: (scope, { value }) => {
    const line = fromBinary(wire.ExpectedHostRecordSchema, value).expectedHost;
    return isInScope(scope, { rack: line?.spec?.rack ?? '', pool: line?.labels['pool'] ?? '' });
  },
  workflowBatches: async (_scope, { value }, hosts) => {
    const batch = fromBinary(wire.WorkflowBatchRecordSchema, value).workflowBatch;
    const rows = batch?.status?.hosts ?? [];
    for (const { host } of rows) {
      if ((await hosts.get(idOf(host))) === undefined) return false;
    }
    return rows.length > 0;
  },
  // A pool without hosts may later include any host.
  pools: async (_scope, { value }, hosts) => {
    const { members } = fromBinary(wire.PoolRecordSchema, value);
    for (const { host } of members) {
      if ((await hosts.get(idOf(host))) === undefined) return false;
    }
    return members.length > 0;
  },
  credentials: (_scope, { key }, hosts) => {
    const name = `credentials/${segment(key, 1)}`;
    return hosts.some('credential', name);
  },
  // The same for everybody.
  templates: always,
  fleet: always,
  // Found only by a uid in the record of a host, or a pool, that is visible.
  facts: always,
  runs: always,
  erasureEvidence: always,
  // It refers to certificates and documents, which have rules of their own.
  erasureOwners: always,
  stepOutputs: always,
  plans: always,
  deployments: always,
};

/** Whether a caller with this scope sees the record. */
export async function isVisible(
  scope: Scope,
  judged: JudgedRecord,
  hosts: VisibleHosts,
): Promise<boolean> {
  const rule = rules[segment(judged.key, 0)];
  return rule !== undefined && (await rule(scope, judged, hosts));
}

/** The hosts of the store that are in the scope; `locations` knows where all hosts are. */
export function visibleHosts(
  store: StateStore,
  scope: Scope,
  locations: HostLocations,
): VisibleHosts {
  const known = new Map<HostId, Promise<Host | undefined>>();
  return {
    get: (hostId) => {
      const visible = known.get(hostId) ?? loadHost(store, scope, hostId);
      known.set(hostId, visible);
      return visible;
    },
    some: (field, name) => locations.some(scope, field, name),
  };
}

/**
 * The host of this id as it is, or as it was before its removal: a repeated request gets its
 * response again. Undefined when the host never existed or is out of scope.
 */
export async function hostInScope(
  store: StateStore,
  scope: Scope,
  hostId: HostId,
): Promise<wire.HostRecord | undefined> {
  const key = storeKey('hosts', hostId);
  const found = await orUnavailable(store.get(key));
  const last =
    found.kind === 'found'
      ? found
      : (await orUnavailable(store.history(key))).findLast(({ kind }) => kind === 'put');
  if (last === undefined || !('value' in last)) return undefined;
  const record = hostOf(last.value);
  return isInScope(scope, locationOf(record.host)) ? record : undefined;
}

async function loadHost(
  store: StateStore,
  scope: Scope,
  hostId: HostId,
): Promise<Host | undefined> {
  const found = await getOrNone(store, 'hosts', hostId);
  return found && hostWithin(scope, found.value);
}

/** Undefined also for a value that cannot be decoded: its place is unknown. */
function hostWithin(scope: Scope, value: Uint8Array): Host | undefined {
  try {
    const { host } = hostOf(value);
    return isInScope(scope, locationOf(host)) ? host : undefined;
  } catch {
    // The host stays hidden. The fleet view reports the record.
    return undefined;
  }
}

/** Undefined also for an invalid name. */
export async function getOrNone(
  store: StateStore,
  ...segments: readonly string[]
): Promise<Entry | undefined> {
  try {
    const found = await orUnavailable(store.get(storeKey(...segments)));
    return found.kind === 'found' ? found : undefined;
  } catch (error) {
    if (error instanceof StoreError && error.code === 'invalidKey') return undefined;
    throw error;
  }
}

/** A scope of pools sees the racks in which it has hosts. */
async function isRackVisible(
  scope: Scope,
  { key }: JudgedRecord,
  hosts: VisibleHosts,
): Promise<boolean> {
  const name = `racks/${segment(key, 1)}`;
  if (scope.racks.length > 0) return scope.racks.includes(name);
  return hosts.some('rack', name);
}

function hostOf(value: Uint8Array): wire.HostRecord {
  return fromBinary(wire.HostRecordSchema, value);
}

function segment(key: string, index: number): string {
  return key.split('.')[index] ?? '';
}
