/** A host in API form: its record, the parts from other sources, and its etag. */
import { create, fromBinary } from '@bufbuild/protobuf';
import {
  type Host,
  type HostId,
  HostSchema,
  HostStatusSchema,
  store as wire,
} from '@rackwright/messages';
import { type Entry, type StoreRevision, storeKey } from '@rackwright/store';
import { displayOf } from '../host/index.ts';
import { idOfKey, readShared, sharedRecordOf } from '../records/index.ts';
import { parseName } from './names.ts';
import { entriesOf } from './paging.ts';
import type { HostsPort, RpcDependencies } from './ports.ts';
import { formatPosition } from './position.ts';

/** Key of a host's record. */
export function hostKey(hostId: HostId): string {
  return storeKey('hosts', hostId);
}

/** Key of the observed facts of a host. */
export function factsKey(hostId: HostId): string {
  return storeKey('facts', hostId);
}

/** Keys of the hosts after the key `after` whose field has this value, from the fleet view. */
export function* hostKeysBy(
  view: Pick<RpcDependencies['fleetView'], 'idsBy'>,
  field: 'rack' | 'credential',
  value: string,
  after = '',
): Generator<string, void, undefined> {
  const behind = after === '' ? '' : idOfKey(after);
  for (const hostId of view.idsBy(field, value, behind)) yield hostKey(hostId);
}

/**
 * Present records of the visible hosts whose field has this value, in order of their keys. Throws
 * for a host whose record cannot be decoded: it may be one of them.
 */
export async function hostsBy(
  { store, fleetView }: Pick<RpcDependencies, 'store' | 'fleetView'>,
  field: 'rack' | 'credential',
  value: string,
): Promise<wire.HostRecord[]> {
  await fleetView.caughtUp();
  const records: wire.HostRecord[] = [];
  const unreadable = fleetView.counts().unreadable.map(({ hostId }) => hostKey(hostId));
  const keys = [...unreadable, ...hostKeysBy(fleetView, field, value)];
  for await (const entry of entriesOf(store, keys)) {
    const record = sharedRecordOf(store, wire.HostRecordSchema, entry);
    const { spec } = record.host ?? {};
    // It may have changed since the view was read.
    if ((field === 'rack' ? spec?.rack : spec?.bmc?.credential) === value) records.push(record);
  }
  return records;
}

/** The sources of the stored and the computed parts of a host. */
export interface PresentDependencies extends Pick<RpcDependencies, 'store'> {
  readonly hosts: Pick<HostsPort, 'isAgentConnected' | 'progressOf' | 'queuePosition'>;
}

/** The host in API form. `facts` of another uid belong to a predecessor and are left out. */
export function presentHost(
  deps: PresentDependencies,
  record: wire.HostRecord,
  revision: StoreRevision,
  facts: wire.HostFacts | undefined,
): Host {
  // A shallow copy is enough: only top-level fields differ from the record.
  const host = record.host === undefined ? create(HostSchema) : { ...record.host };
  host.etag = formatPosition(deps.store, revision);
  if (record.change?.time !== undefined) host.updateTime = record.change.time;
  host.status = host.status === undefined ? create(HostStatusSchema) : { ...host.status };
  if (facts?.hostUid === host.uid) {
    if (facts.inventory) host.status.inventory = facts.inventory;
    host.status.boots = facts.boots;
    host.status.burnIns = facts.burnIns;
  }
  const rackId = parseName('racks', host.spec?.rack ?? '');
  if (rackId !== undefined) host.status.agentConnected = deps.hosts.isAgentConnected(rackId);
  const progress = deps.hosts.progressOf(parseName('hosts', host.name) ?? '');
  if (progress !== undefined) host.status.progress = progress;
  const position = deps.hosts.queuePosition(record);
  const { run } = host.status;
  if (position !== undefined && run?.waiting !== undefined) {
    host.status.run = { ...run, waiting: { ...run.waiting, position } };
  }
  host.status.display = displayOf(host.status);
  return host;
}

/** The host with this id, with its record's revision; undefined when there is none. */
export async function readHost(
  deps: Pick<RpcDependencies, 'store' | 'hosts'>,
  hostId: HostId,
): Promise<{ host: Host; record: wire.HostRecord; revision: StoreRevision } | undefined> {
  const kept = await readShared(deps.store, wire.HostRecordSchema, hostKey(hostId));
  if (kept === undefined) return undefined;
  const facts = await readFacts(deps, hostId);
  const { record, revision } = kept;
  return { host: presentHost(deps, record, revision, facts), record, revision };
}

/** The observed facts of one host. */
export async function readFacts(
  { store }: Pick<RpcDependencies, 'store'>,
  hostId: HostId,
): Promise<wire.HostFacts | undefined> {
  return (await readShared(store, wire.HostFactsSchema, factsKey(hostId)))?.record;
}

/** The record in an entry of the store. */
export function hostRecordOf(entry: Pick<Entry, 'value'>): wire.HostRecord {
  return fromBinary(wire.HostRecordSchema, entry.value);
}
