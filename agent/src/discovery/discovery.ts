/**
 * Machines that netboot and are no hosts: each may be booted for its inventory, by the rack's
 * policy, and is reported to the control plane until that answers (DESIGN §9).
 *
 * D1 Everything is in memory and bounded; the oldest goes first. After a restart of the agent such
 *    a machine boots again, or stays where it is: no promise is broken.
 * D2 A boot authorises an inventory and nothing else; it belongs to no host.
 * D3 Boots are limited at once and per hour, and spaced per MAC. Hosts have their own permission
 *    and their own grants: no number of strangers takes any of theirs.
 * D4 A finding is reported in each session, and again after a pause, until it is answered.
 */

import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { Mac } from '@rackwright/dhcp';
import {
  agent,
  discoveryRefusalOf,
  type HostUid,
  type Inventory,
  type OperationId,
} from '@rackwright/messages';
import { type Cancel, type Clock, type Log, type Random, randomId } from '@rackwright/platform';
import type { DiscoveryBoot, DiscoveryMemory } from '../boot/index.ts';
import type { BindOutcome, BootGrantState } from '../session/index.ts';

export interface DiscoveryLimits {
  /** The upper bound of the rack's policy. */
  readonly bootsMax: number;
  readonly bootsPerHourMax: number;
  /** How long a boot may take from its script to its runner. */
  readonly bootWindowMs: number;
  /** Between two boots of one MAC: a machine must not boot the runner round and round. */
  readonly spacingMs: number;
  /** MACs whose latest boot is remembered; at least as many as boot in an hour. */
  readonly macsMax: number;
  /** Findings that wait for their answer. */
  readonly findingsMax: number;
  readonly repeatMs: number;
}

export const defaultDiscoveryLimits: DiscoveryLimits = {
  bootsMax: 256,
  bootsPerHourMax: 1_000,
  bootWindowMs: 900_000,
  spacingMs: 600_000,
  macsMax: 1_024,
  findingsMax: 128,
  repeatMs: 30_000,
};

export interface DiscoveryParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Sends into the present session; does nothing while there is none. */
  readonly report: (finding: agent.Discovered) => void;
  /** Called with a host that a found machine proved to be, and when it was found (wall time). */
  readonly onHostFound?: (hostUid: HostUid, foundMs: number) => void;
  readonly limits?: Partial<DiscoveryLimits>;
}

/** A boot, and the runner that has bound it. */
interface Boot extends DiscoveryBoot {
  readonly openedSuspendAwareMs: number;
  readonly publicKey?: Uint8Array;
}

/** The maximum length of a runner's report of its machine's BMC. */
const addressCharsMax = 64;

export class AgentDiscovery {
  readonly #parts: DiscoveryParts;
  readonly #limits: DiscoveryLimits;
  #policy: agent.Discovery | undefined;
  /** By MAC, the oldest first; replaced whole at each change. */
  #boots: ReadonlyMap<Mac, Boot> = new Map();
  /** By operation id: ends the stream of the boot's runner. */
  readonly #links = new Map<OperationId, () => void>();
  /** By id, the oldest first. */
  readonly #findings = new Map<string, agent.Discovered>();
  #cancelRepeat: Cancel | undefined;

  constructor(parts: DiscoveryParts) {
    this.#parts = parts;
    this.#limits = { ...defaultDiscoveryLimits, ...parts.limits };
  }

  /** The boot path's memory; undefined while the policy is off or unknown. */
  memory(): DiscoveryMemory | undefined {
    if (this.#policy?.enabled !== true) return undefined;
    const { bootsMax, bootsPerHourMax } = this.#policy;
    const { spacingMs } = this.#limits;
    const limits = {
      bootsMax: Math.min(bootsMax, this.#limits.bootsMax),
      bootsPerHourMax: Math.min(bootsPerHourMax, this.#limits.bootsPerHourMax),
      spacingMs,
    };
    return { limits, boots: this.#boots };
  }

  /** Findings that wait for their answer. */
  get waiting(): number {
    return this.#findings.size;
  }

  /** The policy as the control plane has it now. */
  replace(policy: agent.Discovery): void {
    const was = this.#policy?.enabled ?? false;
    this.#policy = policy;
    if (was !== policy.enabled) {
      const fields = { enabled: policy.enabled, bootsMax: policy.bootsMax };
      this.#parts.log.info(fields, 'policy for machines that are no hosts');
    }
  }

  /**
   * Opens a boot. Whether it may be is the boot path's decision (`permission.ts`), by the time that
   * is meant here too: the latest that was written down, where the clock is behind it.
   */
  open(mac: Mac, writtenAtMs = 0): void {
    const { clock, random, log } = this.#parts;
    const openedAtMs = Math.max(clock.nowMs(), writtenAtMs);
    const boot: Boot = {
      mac,
      operationId: `discovery/${randomId(random)}`,
      bootToken: randomId(random),
      openedAtMs,
      openedSuspendAwareMs: clock.suspendAwareMs(),
      expiresAtMs: openedAtMs + this.#limits.bootWindowMs,
      taken: false,
      over: false,
    };
    this.#keep(boot);
    log.info({ mac, operation: boot.operationId }, 'a machine that is no host boots the runner');
  }

  /** The boot as the runners' gateway knows grants. */
  byToken(bootToken: string): BootGrantState | undefined {
    const boot = [...this.#boots.values()].find((each) => each.bootToken === bootToken);
    return boot === undefined || bootToken === '' ? undefined : grantOf(boot);
  }

  /** Gives the boot to the first key that presents its token. */
  bind(operationId: OperationId, publicKey: Uint8Array): BindOutcome {
    const boot = this.#byOperation(operationId);
    if (boot === undefined) return 'noGrant';
    if (boot.publicKey !== undefined) {
      return Buffer.from(boot.publicKey).equals(publicKey) ? 'bound' : 'otherKey';
    }
    const { clock } = this.#parts;
    // A clock that went back makes no window longer.
    const openForMs = clock.suspendAwareMs() - boot.openedSuspendAwareMs;
    if (clock.nowMs() >= boot.expiresAtMs || openForMs >= this.#limits.bootWindowMs) {
      return 'expired';
    }
    this.#change(boot, { publicKey, taken: true });
    return 'bound';
  }

  /** The runner of this boot is connected: an older stream of it is ended. */
  addLink(operationId: OperationId, close: () => void): void {
    const older = this.#links.get(operationId);
    this.#links.set(operationId, close);
    older?.();
  }

  removeLink(operationId: OperationId, close: () => void): void {
    if (this.#links.get(operationId) === close) this.#links.delete(operationId);
  }

  /** Whether the boot's inventory has not arrived yet. */
  isAwaited(operationId: OperationId): boolean {
    return this.#byOperation(operationId)?.over === false;
  }

  /** The boot's inventory has arrived: it is reported until it is answered. */
  reportInventory(operationId: OperationId, inventory: Inventory, bmcAddress: string): void {
    const boot = this.#byOperation(operationId);
    if (boot === undefined || boot.over) return;
    this.#change(boot, { over: true });
    const { clock, random, log, report } = this.#parts;
    const finding = create(agent.DiscoveredSchema, {
      id: randomId(random),
      bootMac: boot.mac,
      time: timestampFromMs(clock.nowMs()),
      inventory,
      bmcAddress: bmcAddress.slice(0, addressCharsMax),
    });
    this.#findings.set(finding.id, finding);
    const [oldest] = this.#findings.values();
    if (this.#findings.size > this.#limits.findingsMax && oldest !== undefined) {
      this.#findings.delete(oldest.id);
      log.warn({ mac: oldest.bootMac }, 'a finding was dropped: too many wait for an answer');
    }
    log.info({ mac: boot.mac, operation: operationId }, 'a machine that is no host was found');
    report(finding);
    this.#repeatLater();
  }

  /** The boot brings no inventory. */
  endWithoutInventory(operationId: OperationId, why: string): void {
    const boot = this.#byOperation(operationId);
    if (boot === undefined || boot.over) return;
    this.#change(boot, { over: true });
    const fields = { mac: boot.mac, operation: operationId, reason: why };
    this.#parts.log.warn(fields, 'a machine that is no host gives no inventory');
  }

  /** D4 */
  sessionOpened(): void {
    for (const finding of this.#findings.values()) this.#parts.report(finding);
  }

  receiveAnswer({ id, refusal, refused, hostUid }: agent.DiscoveredAnswer): void {
    const finding = this.#findings.get(id);
    if (finding === undefined) return;
    this.#findings.delete(id);
    const reason = discoveryRefusalOf(refusal, refused)?.text;
    if (reason === undefined) return;
    this.#parts.log.info({ mac: finding.bootMac, reason }, 'the machine is not listed');
    if (hostUid === '' || finding.time === undefined) return;
    this.#parts.onHostFound?.(hostUid, timestampMs(finding.time));
  }

  stop(): void {
    this.#cancelRepeat?.();
  }

  #repeatLater(): void {
    if (this.#cancelRepeat !== undefined) return;
    this.#cancelRepeat = this.#parts.clock.after(this.#limits.repeatMs, () => {
      this.#cancelRepeat = undefined;
      if (this.#findings.size === 0) return;
      this.sessionOpened();
      this.#repeatLater();
    });
  }

  #byOperation(operationId: OperationId): Boot | undefined {
    return [...this.#boots.values()].find((boot) => boot.operationId === operationId);
  }

  #change(boot: Boot, change: Partial<Boot>): void {
    this.#boots = new Map(this.#boots).set(boot.mac, { ...boot, ...change });
  }

  /** The latest boot of its MAC, as the newest of all; the oldest goes when there are too many. */
  #keep(boot: Boot): void {
    const boots = new Map(this.#boots);
    const gone = [boots.get(boot.mac)];
    boots.delete(boot.mac);
    boots.set(boot.mac, boot);
    const [oldest] = boots.values();
    if (boots.size > this.#limits.macsMax && oldest !== undefined) {
      boots.delete(oldest.mac);
      gone.push(oldest);
    }
    this.#boots = boots;
    for (const each of gone) if (each !== undefined) this.#links.get(each.operationId)?.();
  }
}

/** D2: no host is named. */
function grantOf(boot: Boot): BootGrantState {
  const { operationId, mac, bootToken, openedAtMs, openedSuspendAwareMs, expiresAtMs } = boot;
  return {
    ...{ operationId, bootToken, openedAtMs, openedSuspendAwareMs, expiresAtMs },
    hostUid: '',
    hostName: 'discovered',
    macs: [mac],
    discovery: true,
    ...(boot.publicKey === undefined ? {} : { publicKey: boot.publicKey }),
  };
}
