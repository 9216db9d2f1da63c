/**
 * Hardware that differs from the last inventory: an added or missing disk or interface, or a boot
 * MAC of the spec that no interface has. Such a host is not available: its certificates may not
 * cover its present disks, and it may never boot from the expected interface again (DESIGN §5).
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  compareBmcDrives,
  type DeviceFacts,
  deviceFactsOf,
  deviceIdentity,
  listedDriveOf,
} from '@rackwright/erasure';
import {
  actors,
  type BmcDriveList,
  type Fault,
  faultOfType,
  HardwareChangeSchema,
  type HostSpec,
  HostState,
  type HostStatus,
  type Inventory,
  RunKind,
  RunOutcome,
} from '@rackwright/messages';
import { type PartChange, partChanges, partChangeText } from '../hardware/changes.ts';
import { clearFault, setFault } from '../pass/fault.ts';
import { type Pass, type PassView, recordCause, timeNow } from '../pass/pass.ts';
import type { DeepReadonly } from '../pass/read-only.ts';
import { truncate } from '../pass/step-failure.ts';

/** The BMC or a runner saw hardware that differs from the last inventory. */
export const hardwareChanged = 'hardwareChanged';
/** A boot MAC of the spec is on no interface of the inventory. */
export const bootMacUnknown = 'bootMacUnknown';

/** Boot MACs that no interface of the inventory has; none where it lists no interface. Pure. */
export function unknownBootMacs(
  { bootMacs }: DeepReadonly<Pick<HostSpec, 'bootMacs'>>,
  now: Inventory,
) {
  const there = macsOf(now);
  return there.size === 0 ? [] : bootMacs.filter((mac) => !there.has(mac.toLowerCase()));
}

/**
 * How the BMC's list of drives differs from an inventory, one text each: drives without a device,
 * and devices whose drive was listed before and no longer is. An incomplete list shows nothing
 * about missing drives. Pure.
 */
export function driveChanges(
  inventory: Inventory,
  before: BmcDriveList | undefined,
  now: BmcDriveList | undefined,
): string[] {
  if (now?.available !== true) return [];
  const devices = inventory.devices.map(deviceFactsOf);
  const findings = compareBmcDrives(now.drives.map(listedDriveOf), devices);
  const added = findings.flatMap((finding) =>
    finding.kind === 'gap' ? [`its BMC lists ${nameOf(finding.drive)}, which was not there`] : [],
  );
  if (!now.complete || before?.available !== true) return added;
  const still = accountedBy(now, devices);
  const gone = [...accountedBy(before, devices)].filter((device) => !still.has(device));
  return [...added, ...gone.map((device) => `its BMC lists disk ${device} no more`)];
}

/**
 * Compares at a verify the BMC's present list: a difference sets the fault, until an inspection.
 */
export function noteDriveChanges(pass: Pass, now: BmcDriveList | undefined): void {
  const { inventory, bmcDrives } = pass.snapshot.facts;
  if (inventory === undefined) return;
  const texts = driveChanges(inventory, bmcDrives, now);
  if (texts.length > 0) setFault(pass, hardwareChanged, texts.join('. '));
}

/** A new inventory replaces the old one: changes are reported once, and settled. */
export function settleHardware(pass: Pass, now: Inventory): void {
  clearFault(pass, hardwareChanged);
  const { inventory: before } = pass.snapshot.facts;
  const changes = before === undefined ? [] : partChanges(before, now);
  if (changes.length === 0) return;
  const texts = changes.slice(0, changesMax).map(partChangeText);
  recordCause(pass, actors.agent, truncate(`hardware changed: ${texts.join(', ')}`, causeMax));
  pass.status.hardwareChange = create(HardwareChangeSchema, {
    time: timeNow(pass),
    changes: changes.slice(0, changesMax).map(shortened),
    further: Math.max(0, changes.length - changesMax),
  });
}

/** The most recorded changes of one inspection; the host's record is bounded. */
const changesMax = 32;
const partTextMax = 128;
const causeMax = 1_024;

function shortened({ kind, part, before, after }: PartChange): PartChange {
  const [name, was, is] = [part, before, after].map((text) => truncate(text, partTextMax));
  return { kind, part: name ?? '', before: was ?? '', after: is ?? '' };
}

/** Compares the boot MACs with the inventory, as known in this pass. */
export function noteBootMacs(pass: Pass): void {
  const inventory = bootsOurs.has(pass.status.state) ? knownInventory(pass) : undefined;
  const unknown = inventory === undefined ? [] : unknownBootMacs(pass.spec, inventory);
  if (unknown.length === 0) {
    clearFault(pass, bootMacUnknown);
    return;
  }
  const are = unknown.length === 1 ? 'is' : 'are';
  const text = `${unknown.join(', ')} ${are} on no interface of its last inventory`;
  const present = faultOfType(pass.status.faults, bootMacUnknown);
  // A different address needs an inspection of its own.
  if (!isSameSet(present?.unknownBootMacs ?? [], unknown)) clearFault(pass, bootMacUnknown);
  setFault(pass, bootMacUnknown, text).unknownBootMacs = [...unknown];
}

function isSameSet(some: readonly string[], others: readonly string[]): boolean {
  const isIn = (macs: readonly string[]) => (mac: string) => macs.includes(mac);
  return some.every(isIn(others)) && others.every(isIn(some));
}

/** States in which the runner is booted for our own purposes. */
const bootsOurs: ReadonlySet<HostState> = new Set([HostState.MANAGEABLE, HostState.AVAILABLE]);

/** The fault of its hardware, if any; a change goes before an unknown boot MAC. */
export function hardwareFaultOf({
  faults,
}: DeepReadonly<HostStatus>): DeepReadonly<Fault> | undefined {
  return faultOfType(faults, hardwareChanged) ?? faultOfType(faults, bootMacUnknown);
}

/** Whether it was inspected after the fault appeared: then only a person can fix the fault. */
export function isInspectedSince(
  { run }: DeepReadonly<HostStatus>,
  { since }: DeepReadonly<Fault>,
): boolean {
  if (run?.kind !== RunKind.INSPECT || run.outcome !== RunOutcome.SUCCEEDED) return false;
  if (run.endTime === undefined || since === undefined) return false;
  return timestampMs(run.endTime) >= timestampMs(since);
}

function knownInventory({ effects, snapshot }: PassView): Inventory | undefined {
  const reported = effects.findLast(
    (effect) => effect.kind === 'facts' && 'inventory' in effect.facts,
  );
  return reported?.kind === 'facts' ? reported.facts.inventory : snapshot.facts.inventory;
}

function macsOf({ interfaces }: Inventory): ReadonlySet<string> {
  return new Set(interfaces.map(({ mac }) => mac.toLowerCase()).filter((mac) => mac !== ''));
}

function accountedBy({ drives }: BmcDriveList, devices: readonly DeviceFacts[]): Set<string> {
  const findings = compareBmcDrives(drives.map(listedDriveOf), devices);
  return new Set(
    findings.flatMap((finding) =>
      finding.kind === 'accounted' ? [deviceIdentity(finding.device) || finding.device.name] : [],
    ),
  );
}

function nameOf({ name, model, serial }: { name: string; model: string; serial: string }): string {
  return ['drive', name, model, serial].filter((each) => each !== '').join(' ');
}
