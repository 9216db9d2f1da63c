/**
 * V1: the fleet view of every replica is what the store has, through faults, crashes and restores.
 *
 * It is compared again and again until the world ends, so also when the faults are over: which
 * hosts there are, what is kept of each, every index, also by the traits in facts, and every count.
 * It decodes records by itself and uses nothing of the view but what the view shows.
 */
import { fromBinary } from '@bufbuild/protobuf';
import type { FleetView } from '@rackwright/controlplane';
import { HostState, store as wire } from '@rackwright/messages';
import { hostRecordOf } from './host-record.ts';
import type { Replica, WorldView } from './view.ts';

/** Between two comparisons. */
const everyMs = 15_000;
const indexed = ['rack', 'credential', 'claim'] as const;

/** Compares for as long as the world goes on. */
export function watchFleetViews(view: WorldView): void {
  const busy = new WeakSet<Replica>();
  const { heap, chance } = view;
  const look = () => {
    for (const replica of view.replicas()) {
      if (busy.has(replica)) continue;
      busy.add(replica);
      // Of a replica that dies meanwhile this never ends.
      void compare(view, replica).finally(() => busy.delete(replica));
    }
    heap.after(chance.around(everyMs), look);
  };
  heap.after(chance.around(everyMs), look);
}

async function compare(view: WorldView, replica: Replica): Promise<void> {
  const { fleetView } = replica;
  const disk = view.storeDisk();
  const acknowledged = disk.latest();
  try {
    await fleetView.caughtUp();
  } catch {
    // The store is away, or slow; a caller is told so.
    view.count('fleet view not caught up');
    return;
  }
  if (view.storeDisk() !== disk || !view.replicas().includes(replica)) return;
  view.count('fleet view compared');
  const found = (text: string) => view.found('V1', `${replica.name}: the fleet view ${text}`);
  if (fleetView.revision < acknowledged) {
    found(`is as of ${fleetView.revision} and says that it has seen ${acknowledged}`);
  }
  const rows = new Map([...fleetView.rows()].map((row) => [row.hostId, row]));
  const known = new Set<string>();
  for (const change of disk.lastChanges('hosts')) {
    const hostId = change.key.slice('hosts.'.length);
    known.add(hostId);
    // What is newer than the view may be in it already.
    if (change.revision > fleetView.revision) continue;
    const row = rows.get(hostId);
    const shown = row?.kind === 'host' ? JSON.stringify(partsOf(row)) : 'nothing';
    const kept = change.kind === 'put' ? JSON.stringify(keptOf(change.value)) : 'nothing';
    if (shown !== kept) found(`shows ${shown} of ${hostId}; the store has ${kept}`);
  }
  for (const hostId of rows.keys()) {
    if (!known.has(hostId)) found(`shows ${hostId}, which never was`);
  }
  judgeIndexes(fleetView, found);
  await judgeTraits(view, replica, found);
}

/** Where nothing is written while it is asked, hosts have the MACs by which they are found. */
async function judgeTraits(
  view: WorldView,
  { fleetView }: Replica,
  found: (text: string) => void,
): Promise<void> {
  const disk = view.storeDisk();
  const before = disk.latest();
  // Also those that no host has any more.
  const macs = new Set([...view.machines.values()].flatMap((machine) => machine.macs));
  const asked = [...macs].map((mac) => ({ mac, wanted: hostsWith(mac, disk).join() }));
  let answers: string[] = [];
  try {
    const all = asked.map(({ mac }) => fleetView.hostsLike([`mac ${mac}`]));
    answers = (await Promise.all(all)).map((ids) => ids.join());
  } catch {
    view.count('fleet view not caught up');
    return;
  }
  if (view.storeDisk() !== disk || disk.latest() !== before) return;
  view.count('traits compared');
  for (const [at, { mac, wanted }] of asked.entries()) {
    if (answers[at] === wanted) continue;
    found(`has ${answers[at]} by the MAC ${mac}; the store has ${wanted}`);
  }
}

/** Ids of the hosts that have a MAC, by their specification or their facts, in order. */
function hostsWith(mac: string, disk: ReturnType<WorldView['storeDisk']>): readonly string[] {
  const ids = [...disk.lastChanges('hosts'), ...disk.lastChanges('facts')].flatMap((change) => {
    if (change.kind !== 'put') return [];
    const [collection = '', id = ''] = change.key.split('.');
    return macsOf(collection, change.value).includes(mac) ? [id] : [];
  });
  return [...new Set(ids)].sort();
}

function macsOf(collection: string, value: Uint8Array): readonly string[] {
  if (collection === 'hosts') {
    return hostRecordOf(value).host?.spec?.bootMacs ?? [];
  }
  const { inventory } = fromBinary(wire.HostFactsSchema, value);
  return inventory?.interfaces.map(({ mac }) => mac) ?? [];
}

/** What the rows say has to be what indexes and counts say. */
function judgeIndexes(fleetView: FleetView, found: (text: string) => void): void {
  const rows = [...fleetView.rows()];
  const hosts = rows.flatMap((row) => (row.kind === 'host' ? [row] : []));
  for (const field of indexed) {
    for (const value of new Set(['', 'racks/r1', ...hosts.map((row) => row[field])])) {
      const wanted = hosts.filter((row) => row[field] === value).map(({ hostId }) => hostId);
      const ids = [...fleetView.idsBy(field, value)];
      if (ids.join() !== wanted.join()) {
        found(`has ${ids} by ${field} "${value}"; its rows say ${wanted}`);
      }
    }
  }
  for (const label of new Set(hosts.flatMap(labelsOf))) {
    const wanted = hosts.filter((row) => labelsOf(row).includes(label));
    const ids = [...fleetView.idsBy('label', label)];
    if (ids.join() !== wanted.map(({ hostId }) => hostId).join()) {
      found(`has ${ids} by the label ${label}; its rows say otherwise`);
    }
  }
  const { hosts: all, byState } = fleetView.counts();
  if (all !== rows.length) found(`counts ${all} hosts and has ${rows.length}`);
  for (const state of Object.values(HostState)) {
    const wanted = hosts.filter((row) => row.state === state).length;
    const counted = byState.get(state) ?? 0;
    if (counted !== wanted) found(`counts ${counted} hosts in state ${state} and has ${wanted}`);
  }
}

function labelsOf({ labels }: Parts): readonly string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

type Parts = Pick<
  Extract<ReturnType<FleetView['rows']> extends Iterable<infer R> ? R : never, { kind: 'host' }>,
  'uid' | 'rack' | 'credential' | 'labels' | 'state' | 'dirty' | 'claim' | 'image' | 'bootMacs'
>;

function partsOf(row: Parts): Parts {
  const { uid, rack, credential, labels, state, dirty, claim, image, bootMacs } = row;
  return { uid, rack, credential, labels, state, dirty, claim, image, bootMacs };
}

function keptOf(value: Uint8Array): Parts {
  const { host } = hostRecordOf(value);
  const { uid = '', labels = {}, spec, status } = host ?? {};
  const { rack = '', bmc, bootMacs = [] } = spec ?? {};
  const { state = HostState.UNSPECIFIED, dirty = false, claim, image = '' } = status ?? {};
  const credential = bmc?.credential ?? '';
  const given = { uid, labels, rack, credential, bootMacs, state, dirty, image };
  // In the order in which rows are compared.
  return partsOf({ ...given, claim: claim?.by ?? '' });
}
