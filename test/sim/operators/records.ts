/** Host records as the store has kept them, for operators who look before they act. */
import { clone, toBinary } from '@bufbuild/protobuf';
import {
  HoldKind,
  type Host,
  HostGoal,
  HostState,
  type HostStatus,
  RunPhase,
  store as wire,
} from '@rackwright/messages';
import type { MemoryDisk } from '@rackwright/store';
import { hostRecordOf } from '../host-record.ts';
import type { SimMachine } from '../machine.ts';
import type { WorldView } from '../view.ts';

export interface KeptHost {
  /** "h1" */
  readonly id: string;
  readonly record: wire.HostRecord;
  readonly host: Host;
  readonly status: HostStatus;
}

interface KeptAt {
  readonly revision: number;
  readonly hosts: readonly KeptHost[];
}

/** What each disk had last. It is asked after every event, and most events write nothing. */
const keptLast = new WeakMap<MemoryDisk, KeptAt>();

/** Every host that there is. */
export function keptHosts(view: WorldView): readonly KeptHost[] {
  const disk = view.storeDisk();
  const revision = disk.latest();
  const known = keptLast.get(disk);
  if (known?.revision === revision) return known.hosts;
  const hosts = disk.lastChanges('hosts').flatMap((change) => {
    if (change.kind !== 'put') return [];
    const record = hostRecordOf(change.value);
    const { host } = record;
    if (host?.status === undefined) return [];
    return [{ id: change.key.slice('hosts.'.length), record, host, status: host.status }];
  });
  keptLast.set(disk, { revision, hosts });
  return hosts;
}

/** Where a machine's BMC is. */
export function addressOf({ name }: SimMachine): string {
  return `10.0.0.${name.slice(1)}`;
}

/** The machine that a host really is, also while it is given a wrong address or MAC. */
export function machineOf(view: WorldView, { host }: KeptHost): SimMachine | undefined {
  const { bmc, bootMacs = [] } = host.spec ?? {};
  const machines = [...view.machines.values()];
  return (
    machines.find((machine) => addressOf(machine) === bmc?.address) ??
    machines.find(({ mac }) => bootMacs.includes(mac))
  );
}

/**
 * Whether the host stands where it shall stand and nothing more will happen to it by itself. The
 * loss of a restored store is still to be accepted: until then its rack finds no machine either.
 */
export function isAtGoal({ host, record, status }: KeptHost): boolean {
  const { run, state, deletion, holds } = status;
  if (holds.some(({ kind }) => kind === HoldKind.RESTORED)) return false;
  if (run !== undefined && run.phase !== RunPhase.ENDED) return false;
  if (deletion !== undefined || record.pendingPower !== undefined) return false;
  const less = host.spec?.goal === HostGoal.MANAGEABLE || host.spec?.retired === true;
  switch (state) {
    case HostState.AVAILABLE:
      return !less;
    case HostState.MANAGEABLE:
      return less;
    case HostState.PROVISIONED:
    case HostState.EXTERNAL:
      return true;
    default:
      return false;
  }
}

const situations = new WeakMap<wire.HostRecord, string>();

/** All of a record but who asked for what: two of them that are equal say that nothing moved. */
export function situationOf(record: wire.HostRecord): string {
  const known = situations.get(record) ?? situationIn(record);
  situations.set(record, known);
  return known;
}

function situationIn(record: wire.HostRecord): string {
  const kept = clone(wire.HostRecordSchema, record);
  kept.requestIds = [];
  delete kept.change;
  if (kept.host !== undefined) delete kept.host.updateTime;
  return Buffer.from(toBinary(wire.HostRecordSchema, kept)).toString('base64');
}
