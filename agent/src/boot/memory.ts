/**
 * All that the boot path knows. It is in memory, so that no boot waits for a disk, a BMC or the
 * control plane. The code that receives snapshots and opens grants replaces these values whole.
 * They are never changed in place (`permission.ts` keeps an index per snapshot object).
 */

import type { Mac } from '@rackwright/dhcp';
import type { HostName, HostUid, OperationId } from '@rackwright/messages';

/** A host of this rack. */
export interface BootHost {
  readonly hostUid: HostUid;
  readonly hostName: HostName;
  readonly macs: readonly string[];
  /** It boots its image over the network whenever it asks, unless a runner is to boot. */
  readonly netboot?: boolean;
  /** The configured profile that it boots by; absent: the rack's settings. */
  readonly bootProfile?: string;
}

/** The permission to start the runner on one host, for one operation, in one window of time. */
export interface BootGrant {
  readonly hostUid: HostUid;
  readonly operationId: OperationId;
  /** The runner's Hello consumes it; the boot path hands it out at each request. */
  readonly bootToken: string;
  /** Wall time, milliseconds since the Unix epoch. The window ends just before `expiresAtMs`. */
  readonly openedAtMs: number;
  readonly expiresAtMs: number;
}

/** One boot of a machine that is no host: it gives its inventory and takes no step. */
export interface DiscoveryBoot {
  /** Lower case, with colons. */
  readonly mac: Mac;
  readonly operationId: OperationId;
  readonly bootToken: string;
  readonly openedAtMs: number;
  readonly expiresAtMs: number;
  /** A runner has presented the token: it starts no second one. */
  readonly taken: boolean;
  /** Its inventory has arrived, or never will. */
  readonly over: boolean;
}

/** The boot settings for unknown machines. */
export interface DiscoveryMemory {
  readonly limits: {
    /** Boots that may be under way at once, and in any hour. */
    readonly bootsMax: number;
    readonly bootsPerHourMax: number;
    /** Between two boots of one MAC. */
    readonly spacingMs: number;
  };
  /** The latest boot of each MAC, the oldest first. */
  readonly boots: ReadonlyMap<Mac, DiscoveryBoot>;
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
  /** Absent: unknown machines get no boot. */
  readonly discovery?: DiscoveryMemory;
}
