/**
 * The boot path's observations: every request for a boot by a known or unknown host, permitted or
 * not.
 *
 * S1 Each observation reaches the observer, at once; only the log is thinned out.
 * S2 An observer that throws costs a log line, not a boot.
 */

import type { Mac } from '@rackwright/dhcp';
import type { HostUid } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import { LineBudget } from './line-budget.ts';
import type { BootMemory } from './memory.ts';
import { type BootDecision, bootDecision, permissionOf } from './permission.ts';

/** How far a boot got: offered, loader fetched, script fetched, kernel or ramdisk fetched. */
export type NetbootStage = 'dhcp' | 'tftp' | 'script' | 'file';

export interface NetbootObservation {
  /** Lower case, with colons. */
  readonly mac: Mac;
  /** Absent when no host of the snapshot has this MAC. */
  readonly hostUid?: HostUid;
  readonly stage: NetbootStage;
  /** Whether the host may boot the runner now. */
  readonly permitted: boolean;
  readonly atMs: number;
}

export interface BootGateOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Read at every request; returns at once. */
  memory(): BootMemory;
  /** Called synchronously; must be quick. */
  onNetboot(observation: NetbootObservation): void;
  /** Opens a boot for the inventory of a machine that is no host; `memory` has it at once. */
  openDiscovery?(mac: Mac): void;
}

/** Asks for permission and reports the request: no stage can do one without the other. */
export type BootGate = (mac: Mac, stage: NetbootStage) => BootDecision;

const observationLinesPerSecondMax = 20;

export function makeBootGate(options: BootGateOptions): BootGate {
  const { clock, log } = options;
  const budget = new LineBudget(clock, observationLinesPerSecondMax, 1_000);
  return (mac, stage) => {
    const atMs = clock.nowMs();
    const decision = decide(options, mac, stage, atMs);
    const hostUid = 'hostUid' in decision ? decision.hostUid : undefined;
    const permitted = permissionOf(decision) === 'runner';
    const whose = hostUid === undefined ? {} : { hostUid };
    budget.spend((suppressed) => {
      log.info({ mac, host: hostUid, stage, decision: decision.kind, suppressed }, 'netboot');
    });
    try {
      options.onNetboot({ mac, ...whose, stage, permitted, atMs });
    } catch (error) {
      log.error({ mac, stage }, 'observer of netboots failed', error);
    }
    return decision;
  };
}

/** Reports that a system, and no boot firmware, has asked for an address. */
export type AddressWatch = (mac: Mac) => void;

/** Calls `onAddressAsked` for known hosts only, at once; an exception in it costs a log line. */
export function makeAddressWatch(
  { clock, log, memory }: Pick<BootGateOptions, 'clock' | 'log' | 'memory'>,
  onAddressAsked: (hostUid: HostUid) => void,
): AddressWatch {
  return (mac) => {
    const decision = bootDecision(memory(), mac, clock.nowMs());
    if (!('hostUid' in decision)) return;
    try {
      onAddressAsked(decision.hostUid);
    } catch (error) {
      log.error({ mac }, 'observer of address requests failed', error);
    }
  };
}

/** A boot for discovery begins with its script: a flood of mere offers opens nothing. */
function decide(
  { memory, openDiscovery }: BootGateOptions,
  mac: Mac,
  stage: NetbootStage,
  atMs: number,
): BootDecision {
  const decision = bootDecision(memory(), mac, atMs);
  if (decision.kind !== 'mayDiscover' || stage !== 'script') return decision;
  openDiscovery?.(mac);
  return bootDecision(memory(), mac, atMs);
}
