/**
 * Network faults that an agent reports, on their way to the rack's record.
 *
 * Invariants:
 * 1. The list is written with a heartbeat, only when it differs, and no faster than `spacingMs`.
 * 2. It names only hosts of its own rack. It contains a foreign MAC only if that is a boot MAC of a
 *    host of another rack, and it does not name that host.
 * 3. What is kept is bounded, whatever the agent sends.
 */
import { create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type RackFault,
  RackFaultSchema,
  RackFaultType,
  type RackId,
  type RackStatus,
  store as wire,
} from '@rackwright/messages';
import { keySegment, storeKey } from '@rackwright/store';
import { isKnownRackFault, rackFaultText } from '../../host/index.ts';
import { idOf, readShared } from '../../records/index.ts';
import type { SessionDependencies } from '../base/dependencies.ts';
import { updateRack } from '../base/update-rack.ts';

const faultsMax = 32;
const spacingMs = 5_000;
const macShape = /^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/;
const addressShape = /^[0-9a-f.:]{0,45}$/;

type FaultDependencies = Pick<SessionDependencies, 'clock' | 'hosts' | 'log' | 'store'>;

export class NetworkFaults {
  readonly #deps: FaultDependencies;
  readonly #rackId: RackId;
  #heard: agent.NetworkFaults | undefined;
  #written: agent.NetworkFaults | undefined;
  #writtenAtMs = Number.NEGATIVE_INFINITY;

  constructor(deps: FaultDependencies, rackId: RackId) {
    this.#deps = deps;
    this.#rackId = rackId;
  }

  receive(faults: agent.NetworkFaults): void {
    this.#heard = create(agent.NetworkFaultsSchema, { faults: faults.faults.slice(0, faultsMax) });
  }

  /**
   * Called with a heartbeat. Never rejects: a failed write is tried again with the next heartbeat.
   */
  async write(): Promise<void> {
    const { clock, log } = this.#deps;
    const list = this.#heard;
    const nowMs = clock.nowMs();
    if (list === undefined || list === this.#written) return;
    if (Math.abs(nowMs - this.#writtenAtMs) < spacingMs) return;
    this.#writtenAtMs = nowMs;
    try {
      const found: RackFault[] = [];
      for (const reported of list.faults) found.push(...(await this.#faultOf(reported)));
      await updateRack(this.#deps, this.#rackId, (_record, status) => keep(status, found, nowMs));
      this.#written = list;
    } catch (error) {
      log.warn({ rack: this.#rackId }, 'faults of the network are not written yet', error);
    }
  }

  /** Empty for malformed fields, a host of another rack, or a MAC of no other rack. */
  async #faultOf({ type, mac, address, hostUid }: agent.NetworkFault): Promise<RackFault[]> {
    if (!isKnownRackFault(type) || !addressShape.test(address)) return [];
    if (mac !== '' && !macShape.test(mac)) return [];
    if (type === RackFaultType.MAC_OF_OTHER_RACK && !(await this.#isOfOtherRack(mac))) return [];
    const hostId = hostUid === '' ? '' : this.#deps.hosts.hostIdOfUid(hostUid, this.#rackId);
    if (hostId === undefined) return [];
    const host = hostId === '' ? '' : `hosts/${hostId}`;
    const message = rackFaultText({ type, mac, address, host });
    return [create(RackFaultSchema, { type, mac, address, host, message })];
  }

  async #isOfOtherRack(mac: string): Promise<boolean> {
    if (mac === '') return false;
    const { hosts, store } = this.#deps;
    const key = storeKey('reservations', 'mac', keySegment(mac));
    const kept = await readShared(store, wire.ReservationSchema, key);
    const rack = kept && hosts.index.rackOf(idOf(kept.record.holder));
    return rack !== undefined && rack !== this.#rackId;
  }
}

/** A fault that was there before keeps its start time. */
function keep(status: RackStatus, found: readonly RackFault[], nowMs: number): void {
  const since = timestampFromMs(nowMs);
  status.faults = found.map((fault) => {
    const before = status.faults.find((other) => isSame(other, fault));
    return create(RackFaultSchema, { ...fault, since: before?.since ?? since });
  });
}

function isSame(one: RackFault, other: RackFault): boolean {
  return equals(RackFaultSchema, { ...one, since: undefined }, { ...other, since: undefined });
}
