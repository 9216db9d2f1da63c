/**
 * What the boot path knows: the whole of it, in memory, so that no boot waits for a disk, a BMC or
 * the control plane. Whoever receives snapshots and opens grants replaces these values whole; they
 * are never changed in place (`permission.ts` keeps an index per snapshot object).
 */

/** A host of this rack. */
export interface BootHost {
  readonly hostUid: string;
  readonly hostName: string;
  readonly macs: readonly string[];
}

/** The permission to start the runner on one host, for one operation, in one window of time. */
export interface BootGrant {
  readonly hostUid: string;
  readonly operationId: string;
  /** Consumed by the runner's Hello; the boot path hands it out as often as it is asked. */
  readonly bootToken: string;
  /** Wall time, milliseconds since the Unix epoch. The window ends just before `expiresAtMs`. */
  readonly openedAtMs: number;
  readonly expiresAtMs: number;
}

export interface BootMemory {
  readonly snapshot: {
    /** Raised by the control plane with every change of a boot decision. */
    readonly generation: number;
    readonly hosts: readonly BootHost[];
  };
  readonly grants: readonly BootGrant[];
  /**
   * The latest wall time that was ever written down. A clock that fell behind it (a dead battery)
   * must not make an old grant young again: expiry uses the later of the two (DESIGN §9).
   */
  readonly writtenAtMs?: number;
}
