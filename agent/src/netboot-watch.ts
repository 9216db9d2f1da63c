/**
 * Reports hosts that netboot without an order, and hosts that should have netbooted and did not
 * (DESIGN §5).
 *
 * 1. A known host that asks the boot services without a grant is a fact about that host, reported
 *    at most once per `repeatAfterMs`.
 * 2. When such a host shows up while a grant of another host waits, and that other host has not
 *    shown up `missingAfterMs` later either, this is a fact about the other host: its BMC's power
 *    seems to be wired to the wrong machine.
 */

import { type Timestamp, timestampFromMs } from '@bufbuild/protobuf/wkt';
import type { Mac } from '@rackwright/dhcp';
import type { HostName, HostUid, OperationId } from '@rackwright/messages';
import type { Cancel, Clock } from '@rackwright/platform';

export interface WatchedNetboot {
  readonly mac: Mac;
  readonly hostUid?: HostUid;
  readonly permitted: boolean;
  readonly atMs: number;
  /** The stage that it reached. */
  readonly stage: string;
}

/** The part of the boot memory that is read. */
export interface NetbootMemory {
  readonly snapshot: {
    readonly hosts: readonly { readonly hostUid: HostUid; readonly hostName: HostName }[];
  };
  readonly grants: readonly {
    readonly hostUid: HostUid;
    readonly operationId: OperationId;
    readonly openedAtMs: number;
    readonly expiresAtMs: number;
  }[];
}

export interface UnexpectedNetboot {
  readonly mac: Mac;
  readonly hostUid: HostUid;
  readonly hostName: HostName;
  /** Empty when no other host was expected. */
  readonly insteadOfOperationId: OperationId;
  /** When it was seen, wall time. */
  readonly time: Timestamp;
}

export interface NetbootWatchParts {
  readonly clock: Clock;
  readonly memory: () => NetbootMemory;
  /** `hostUid` is the host that the fact is about. */
  readonly publish: (hostUid: HostUid, fact: UnexpectedNetboot) => void;
  readonly limits: NetbootWatchLimits;
}

export interface NetbootWatchLimits {
  readonly repeatAfterMs: number;
  readonly missingAfterMs: number;
  /** Hosts remembered as seen; beyond it the longest unseen is forgotten. */
  readonly hostsMax: number;
  /** Judgements that may wait for their time at once. */
  readonly pendingMax: number;
}

export const defaultNetbootWatchLimits: NetbootWatchLimits = {
  repeatAfterMs: 60_000,
  missingAfterMs: 120_000,
  hostsMax: 10_000,
  pendingMax: 256,
};

export class NetbootWatch {
  readonly #parts: NetbootWatchParts;
  /** Host uid → wall time of its last request of any kind, oldest first. */
  readonly #seenAtMs = new Map<HostUid, number>();
  /** Host uid → wall time of its last report. */
  readonly #reportedAtMs = new Map<HostUid, number>();
  /** "operation id of the missing, uid of the shown" → its timer. */
  readonly #pending = new Map<string, Cancel>();

  constructor(parts: NetbootWatchParts) {
    this.#parts = parts;
  }

  /** Quick and synchronous: the boot path calls it. */
  observe({ mac, hostUid, permitted, atMs }: WatchedNetboot): void {
    if (hostUid === undefined) return;
    this.#remember(this.#seenAtMs, hostUid, atMs);
    if (permitted) return;
    const { memory, publish, limits } = this.#parts;
    const { snapshot, grants } = memory();
    const hostName = snapshot.hosts.find((host) => host.hostUid === hostUid)?.hostName ?? '';
    const time = timestampFromMs(atMs);
    const reportedAtMs = this.#reportedAtMs.get(hostUid);
    if (reportedAtMs === undefined || atMs - reportedAtMs >= limits.repeatAfterMs) {
      this.#remember(this.#reportedAtMs, hostUid, atMs);
      publish(hostUid, { mac, hostUid, hostName, insteadOfOperationId: '', time });
    }
    for (const grant of grants) {
      if (grant.hostUid === hostUid || atMs > grant.expiresAtMs) continue;
      const insteadOfOperationId = grant.operationId;
      this.#judgeLater(grant, { mac, hostUid, hostName, insteadOfOperationId, time });
    }
  }

  stop(): void {
    for (const cancel of this.#pending.values()) cancel();
    this.#pending.clear();
  }

  /** Rule 2: the host that should have booted gets its time first. */
  #judgeLater(
    grant: { readonly hostUid: HostUid; readonly openedAtMs: number },
    fact: UnexpectedNetboot,
  ): void {
    if (this.#hasShownUp(grant)) return;
    const { clock, memory, publish, limits } = this.#parts;
    const key = `${fact.insteadOfOperationId} ${fact.hostUid}`;
    if (this.#pending.has(key) || this.#pending.size >= limits.pendingMax) return;
    const judge = (): void => {
      this.#pending.delete(key);
      const isOpen = memory().grants.some(
        ({ operationId }) => operationId === fact.insteadOfOperationId,
      );
      if (isOpen && !this.#hasShownUp(grant)) publish(grant.hostUid, fact);
    };
    this.#pending.set(key, clock.after(limits.missingAfterMs, judge));
  }

  #hasShownUp({ hostUid, openedAtMs }: { hostUid: HostUid; openedAtMs: number }): boolean {
    return (this.#seenAtMs.get(hostUid) ?? Number.NEGATIVE_INFINITY) >= openedAtMs;
  }

  #remember(times: Map<HostUid, number>, hostUid: HostUid, atMs: number): void {
    times.delete(hostUid);
    times.set(hostUid, atMs);
    if (times.size <= this.#parts.limits.hostsMax) return;
    const oldest = times.keys().next().value;
    if (oldest !== undefined) times.delete(oldest);
  }
}
