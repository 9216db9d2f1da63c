/**
 * Faults of the provisioning network, for people: kept while they last, reported as one list.
 *
 * N1 Bounded: at most `ofTypeMax` faults of each type are kept; beyond that the one seen longest
 *    ago is dropped.
 * N2 The list is sent when a fault begins or ends, at most once in `spacingMs`. A repeated report
 *    of a fault does not send it.
 */
import { create, equals } from '@bufbuild/protobuf';
import { agent, type HostUid, RackFaultType } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';
import type { DhcpFault } from './boot/index.ts';
import type { TracedGrant } from './boot-trace/index.ts';

export interface NetworkFaultLimits {
  readonly ofTypeMax: number;
  readonly spacingMs: number;
  /**
   * How long a declined address, a used-up range, a strange MAC and an unseen host are reported.
   */
  readonly declinedMs: number;
  readonly exhaustedMs: number;
  readonly strangerMs: number;
  readonly unseenMs: number;
}

export const defaultNetworkFaultLimits: NetworkFaultLimits = {
  ofTypeMax: 8,
  spacingMs: 10_000,
  declinedMs: 3_600_000,
  exhaustedMs: 600_000,
  strangerMs: 3_600_000,
  unseenMs: 86_400_000,
};

export interface NetworkFaultParts {
  readonly clock: Pick<Clock, 'suspendAwareMs' | 'after'>;
  /** Into the open session; nothing without one. */
  readonly report: (faults: agent.NetworkFaults) => void;
  readonly limits: NetworkFaultLimits;
}

interface KeptFault {
  readonly fault: agent.NetworkFault;
  /** On the clock that only grows; infinite: until it is seen to be over. */
  readonly untilMs: number;
}

type Subject = Partial<Pick<agent.NetworkFault, 'mac' | 'address' | 'hostUid'>>;

const { FOREIGN_DHCP_SERVER, ADDRESS_DECLINED, RANGE_EXHAUSTED } = RackFaultType;
const { BOOT_MAC_NOT_SEEN, MAC_OF_OTHER_RACK } = RackFaultType;

export class AgentNetworkFaults {
  readonly #parts: NetworkFaultParts;
  /** By type and subject, seen longest ago first. */
  readonly #kept = new Map<string, KeptFault>();
  #reported: agent.NetworkFaults = create(agent.NetworkFaultsSchema);
  #reportedAtMs = Number.NEGATIVE_INFINITY;
  #timer: Cancel | undefined;
  #expiry: Cancel | undefined;

  constructor(parts: NetworkFaultParts) {
    this.#parts = parts;
  }

  /** A report of the DHCP server about its network. */
  dhcp(fault: DhcpFault): void {
    const { declinedMs, exhaustedMs } = this.#parts.limits;
    switch (fault.kind) {
      case 'otherServer':
        return this.#raise(FOREIGN_DHCP_SERVER, { address: fault.serverAddress }, Infinity);
      case 'declined': {
        const { mac, address } = fault;
        return this.#raise(ADDRESS_DECLINED, { mac, address }, declinedMs);
      }
      case 'noAddressLeft':
        return this.#raise(RANGE_EXHAUSTED, { mac: fault.mac }, exhaustedMs);
    }
  }

  /** The other DHCP server is gone. */
  serverGone(address: string): void {
    this.#clear(({ type, address: of }) => type === FOREIGN_DHCP_SERVER && of === address);
  }

  /** The time of a boot is nearly over, and nothing was seen of its host. */
  unseen({ hostUid, macs: [mac = ''] }: TracedGrant): void {
    this.#raise(BOOT_MAC_NOT_SEEN, { hostUid, mac }, this.#parts.limits.unseenMs);
  }

  /**
   * A machine asked for a boot; where no host is named, the control plane knows whose machine it
   * is.
   */
  noteBootRequest({
    mac,
    hostUid,
  }: {
    readonly mac: string;
    readonly hostUid?: HostUid | undefined;
  }): void {
    if (hostUid === undefined) {
      this.#raise(MAC_OF_OTHER_RACK, { mac }, this.#parts.limits.strangerMs);
      return;
    }
    if (this.#kept.size === 0) return;
    this.#clear((fault) => fault.hostUid === hostUid || isStranger(fault, mac));
  }

  forgetHost(hostUid: HostUid): void {
    this.#clear((fault) => fault.hostUid === hostUid);
  }

  /** The new session has received nothing yet. */
  sessionOpened(): void {
    this.#reported = create(agent.NetworkFaultsSchema);
    this.#reportedAtMs = this.#parts.clock.suspendAwareMs();
    this.#reported = this.#list();
    this.#parts.report(this.#reported);
  }

  stop(): void {
    this.#timer?.();
    this.#expiry?.();
  }

  #raise(type: RackFaultType, subject: Subject, lastsMs: number): void {
    const { clock, limits } = this.#parts;
    const fault = create(agent.NetworkFaultSchema, { type, ...subject });
    const key = [type, fault.mac, fault.address, fault.hostUid].join(' ');
    const isKnown = this.#kept.delete(key);
    this.#kept.set(key, { fault, untilMs: clock.suspendAwareMs() + lastsMs });
    if (isKnown) return;
    const ofType = [...this.#kept].filter(([, kept]) => kept.fault.type === type);
    const [oldest] = ofType;
    if (ofType.length > limits.ofTypeMax && oldest !== undefined) this.#kept.delete(oldest[0]);
    this.#changed();
  }

  #clear(isOver: (fault: agent.NetworkFault) => boolean): void {
    const over = [...this.#kept].filter(([, { fault }]) => isOver(fault));
    for (const [key] of over) this.#kept.delete(key);
    if (over.length > 0) this.#changed();
  }

  #changed(): void {
    this.#expire();
    if (this.#timer !== undefined) return;
    const { clock, limits } = this.#parts;
    const sinceMs = clock.suspendAwareMs() - this.#reportedAtMs;
    this.#timer = clock.after(Math.max(0, limits.spacingMs - sinceMs), () => {
      this.#timer = undefined;
      this.#report();
    });
  }

  #report(): void {
    const list = this.#list();
    if (equals(agent.NetworkFaultsSchema, list, this.#reported)) return;
    this.#reported = list;
    this.#reportedAtMs = this.#parts.clock.suspendAwareMs();
    this.#parts.report(list);
  }

  /** In an order of its own, so that seeing one again changes nothing. */
  #list(): agent.NetworkFaults {
    const keys = [...this.#kept.keys()].toSorted();
    const faults = keys.flatMap((key) => this.#kept.get(key)?.fault ?? []);
    return create(agent.NetworkFaultsSchema, { faults });
  }

  /** Checks again when the first of them may be over. */
  #expire(): void {
    this.#expiry?.();
    this.#expiry = undefined;
    const { clock } = this.#parts;
    const nextMs = Math.min(...[...this.#kept.values()].map(({ untilMs }) => untilMs));
    if (!Number.isFinite(nextMs)) return;
    this.#expiry = clock.after(Math.max(0, nextMs - clock.suspendAwareMs()), () => {
      const nowMs = clock.suspendAwareMs();
      const over = [...this.#kept].filter(([, { untilMs }]) => untilMs <= nowMs);
      for (const [key] of over) this.#kept.delete(key);
      if (over.length > 0) this.#changed();
      else this.#expire();
    });
  }
}

function isStranger({ type, mac }: agent.NetworkFault, of: string): boolean {
  return type === MAC_OF_OTHER_RACK && mac === of;
}
