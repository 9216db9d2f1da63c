/** Validation of a rack's spec, and of the parts that the fleet's spec shares with it. */
import { PowerMismatchPolicy, type RackSpec, type WipeBudget } from '@rackwright/messages';
import { controlCharacters } from '../call/texts.ts';
import type { Violations } from '../call/violations.ts';
import { limitHostsMax } from '../host/index.ts';
import { checkEnum } from '../host/spec/host-spec.ts';
import { checkDiscoveryPolicy } from './discovery-spec.ts';

const displayNameCharsMax = 120;
const budgetSecondsMax = 604_800;
const powerSyncSecondsRange = { least: 10, most: 3_600 } as const;

/** Rack fields that Update may name. */
export const rackPaths = [
  'labels',
  'spec',
  'spec.display_name',
  'spec.limits',
  'spec.limits.runs',
  'spec.wipe_budget',
  'spec.wipe_budget.hosts',
  'spec.wipe_budget.seconds',
  'spec.power_mismatch',
  'spec.power_sync_seconds',
  'spec.discovery',
  'spec.discovery.enabled',
  'spec.discovery.machines_max',
  'spec.discovery.rules',
  'spec.discovery.bmc_networks',
];

export function checkRackSpec(path: string, spec: RackSpec, violations: Violations): void {
  const { displayName, limits, wipeBudget, powerMismatch, powerSyncSeconds } = spec;
  if (displayName.length > displayNameCharsMax || controlCharacters.test(displayName)) {
    violations.add(
      `${path}.display_name`,
      `must have at most ${displayNameCharsMax} characters without control characters`,
    );
  }
  const runs = limits?.runs;
  if (runs !== undefined && (runs === 0 || runs > limitHostsMax)) {
    const instead = runs === 0 ? '; to let nothing begin, freeze the rack' : '';
    violations.add(
      `${path}.limits.runs`,
      `is ${runs}; it must be from 1 to ${limitHostsMax}${instead}`,
    );
  }
  if (wipeBudget !== undefined) checkBudget(`${path}.wipe_budget`, wipeBudget, violations);
  checkEnum(`${path}.power_mismatch`, PowerMismatchPolicy, powerMismatch, violations);
  if (spec.discovery !== undefined) {
    checkDiscoveryPolicy(`${path}.discovery`, spec.discovery, violations);
  }
  if (powerSyncSeconds === undefined || powerSyncSeconds === 0) return;
  const { least, most } = powerSyncSecondsRange;
  if (powerSyncSeconds >= least && powerSyncSeconds <= most) return;
  violations.add(
    `${path}.power_sync_seconds`,
    `is ${powerSyncSeconds}; it must be 0 (off) or from ${least} to ${most}`,
  );
}

export function checkBudget(path: string, budget: WipeBudget, violations: Violations): void {
  const { hosts, seconds } = budget;
  if (hosts > limitHostsMax) {
    violations.add(`${path}.hosts`, `is ${hosts}; it must be from 0 to ${limitHostsMax}`);
  }
  if (seconds !== undefined && (seconds === 0 || seconds > budgetSecondsMax)) {
    violations.add(`${path}.seconds`, `is ${seconds}; it must be from 1 to ${budgetSecondsMax}`);
  }
}
