/**
 * Every storage device that any source reports needs a decision. The sources are the kernel and the
 * bus, firmware tables, and the BMC. A device without a decision is a gap, and keeps a host from
 * being erased and from `available` (DESIGN §5, Scope). Pure.
 */

import {
  compareBmcDrives,
  type DeviceFacts,
  type DriveFinding,
  describeGap,
  deviceFactsOf,
  deviceIdentity,
  listedDriveOf,
  type ScopeDecision,
  signGaps,
  storageSignsOf,
} from '@rackwright/erasure';
import {
  type DiskElsewhere,
  FailingDisks,
  type Inventory,
  namedDisks,
  RaidDrives,
  type RunFailure,
} from '@rackwright/messages';
import { knownDrives } from '../bmc/drives.ts';
import type { Pass, PassView } from '../pass/pass.ts';
import { messageMax, stepFailure } from '../pass/step-failure.ts';
import { disksElsewhere } from './elsewhere.ts';

/** One problem for a person, in one sentence that says how to fix it. */
export interface StorageProblem {
  readonly text: string;
  /** Set where the problem is a disk that another host has. */
  readonly disk?: DiskElsewhere;
}

/** All storage without a decision, from every source. */
export function gapsOf(pass: Pass, inventory: Inventory): StorageProblem[] {
  const devices = inventory.devices.map(deviceFactsOf);
  const signs = signGaps(storageSignsOf(inventory), devices);
  return [
    ...signs.map((gap) => ({ text: describeGap(gap) })),
    ...gapsOfBmc(pass, devices),
    ...disksElsewhere(pass.record),
    ...failingDisks(pass, inventory),
  ];
}

/**
 * Disks that report that they are failing, where the policy keeps such a host from use. A host that
 * is retired is erased all the same: that is the way out for a host with a failing disk.
 */
export function failingDisks(
  { spec, status }: Pick<PassView, 'spec' | 'status'>,
  { devices }: Pick<Inventory, 'devices'>,
): StorageProblem[] {
  const leaves = spec.retired === true || status.deletion !== undefined;
  if (leaves || spec.cleaning?.failingDisks !== FailingDisks.REFUSE) return [];
  return devices.flatMap((device) => {
    if (device.health?.passed !== false) return [];
    const name = deviceIdentity(device) || device.device;
    const text =
      `disk ${name} says that it is failing: replace it, retire the host to have it erased, ` +
      'or set cleaning.failing_disks to accept';
    return [{ text }];
  });
}

/** Comparison of the devices with the drives that the BMC lists, by the cleaning policy. */
export function bmcFindings(pass: PassView, devices: readonly DeviceFacts[]): DriveFinding[] {
  const drives = knownDrives(pass)?.drives ?? [];
  const isAccepted = pass.spec.cleaning?.raidDrives === RaidDrives.ACCEPT;
  return compareBmcDrives(drives.map(listedDriveOf), devices).map((finding) => {
    if (finding.kind !== 'behindVolume' || isAccepted) return finding;
    const { drive, reason, action } = finding;
    return { kind: 'gap', drive, reason, action };
  });
}

function gapsOfBmc(pass: PassView, devices: readonly DeviceFacts[]): StorageProblem[] {
  return bmcFindings(pass, devices).flatMap((finding) => {
    switch (finding.kind) {
      case 'gap':
        return [{ text: `${finding.reason}: ${finding.action}` }];
      case 'accounted':
        return hiddenByBmc(finding.device, finding.hiddenBytes);
      case 'behindVolume':
      case 'notStorage':
        return [];
    }
  });
}

/** A device that reports its own native size is more reliable than its BMC. */
function hiddenByBmc(device: DeviceFacts, hiddenBytes: number): StorageProblem[] {
  if (hiddenBytes === 0 || device.capacity?.kind === 'examined') return [];
  const name = deviceIdentity(device) || device.name;
  const text =
    `disk ${name} shows ${hiddenBytes} bytes less than its BMC lists: ` +
    'look whether a part of it is hidden, or take it out';
  return [{ text }];
}

/** All devices that cannot be erased. */
export function refusalsOf(decisions: readonly ScopeDecision[]): StorageProblem[] {
  return decisions.flatMap((decision) => {
    if (decision.kind !== 'refused') return [];
    const { device, reason, action } = decision;
    const name = deviceIdentity(device) || device.name;
    return [{ text: `disk ${name} cannot be erased: it ${reason}; ${action}` }];
  });
}

/** One failure that names every problem, each with its fix; undefined: there is none. */
export function failureOf(problems: readonly StorageProblem[]): RunFailure | undefined {
  const [first] = problems;
  if (first === undefined) return undefined;
  const texts = problems.map(({ text }) => text);
  const count = problems.length === 1 ? '' : `${problems.length} problems: `;
  const message = count + texts.join('. ');
  // A sentence that the message cuts off does not name its disk.
  const disks = problems.flatMap(({ disk }, at) => {
    const { length } = count + texts.slice(0, at + 1).join('. ');
    return disk === undefined || length > messageMax ? [] : [disk];
  });
  const details = disks.length === 0 ? undefined : namedDisks(disks);
  return stepFailure('deviceRefused', message, texts.join('\n'), details);
}
