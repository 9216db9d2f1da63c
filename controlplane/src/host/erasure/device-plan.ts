/** Which devices a clean erases and how, fixed by the run's first inventory (DESIGN §5, Scope). */
import { create } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  decideScope,
  describePresence,
  deviceFactsOf,
  deviceIdentity,
  type ErasureMethod,
  methodToWire,
  orderedScopePolicy,
  planVerification,
  presenceDifferences,
  rerunClassOfAll,
  type ScopeDecision,
  type ScopePolicy,
  storageDeviceOf,
  verificationToWire,
} from '@rackwright/erasure';
import {
  agent,
  applyVolumesStep,
  burnInDiskStep,
  disabledStep,
  ErasureLevel,
  eraseMetadataStep,
  eraseStep,
  type FleetSpec,
  type Host,
  type HostSpec,
  type Inventory,
  isErasure,
  PriorityPlace,
  RaidDrives,
  RerunClass,
  type Run,
  type RunFailure,
  RunKind,
  type RunStep,
  StepState,
  writeImageStep,
} from '@rackwright/messages';
import { type Disabling, disablingOf } from '../../steps/index.ts';
import { isStepOver, type Pass, type PassView, timeAfter } from '../pass/pass.ts';
import type { DeepReadonly, RunView } from '../pass/read-only.ts';
import { stepFailure } from '../pass/step-failure.ts';
import type { EngineTiming } from '../pass/timing.ts';
import { disksElsewhere } from './elsewhere.ts';
import { failingDisks, failureOf, gapsOf, refusalsOf } from './gaps.ts';
import { checkMachine } from './identity.ts';
import { scopePolicy, verificationPolicy } from './policy.ts';
import { burnInMs, eraseTimeoutMs } from './times.ts';

/** Kinds of run that take an inventory before they write to the machine. */
const writes: ReadonlySet<RunKind> = new Set([RunKind.CLEAN, RunKind.PROVISION, RunKind.REIMAGE]);

/**
 * Writes the device plan into the record, or returns why this host cannot be cleaned: a wrong
 * machine, a disk that is not visible or cannot be erased, no disk at all, or a list of steps after
 * which the host would not count as erased.
 */
export function planDevices(pass: Pass, run: Run, inventory: Inventory): RunFailure | undefined {
  if (!writes.has(run.kind)) return undefined;
  const wrongMachine = checkMachine(pass, inventory.system);
  if (wrongMachine !== undefined) return wrongMachine;
  if (run.kind !== RunKind.CLEAN) {
    // A host in use keeps its disks: a failing one is only shown.
    const failing = run.kind === RunKind.PROVISION ? failingDisks(pass, inventory) : [];
    return (
      failureOf([...disksElsewhere(pass.record), ...failing]) ?? nothingToWrite(run, inventory)
    );
  }
  const tooWeak = tooWeakFor(pass.host, run, pass.snapshot.fleet);
  if (tooWeak !== undefined) return tooWeak;
  const leaving = drivesThatLeave(pass, run, inventory);
  if (leaving !== undefined) return leaving;
  // Before the volumes exist, the devices are not those that the list erases, and may be no disks.
  if (areVolumesNext(run)) return failureOf(disksElsewhere(pass.record));
  const erasures = run.steps.filter((step) => isErasure(step.name));
  if (erasures.length === 0) return undefined;
  const decisions = decideForSteps(inventory, erasures, pass.spec.cleaning);
  const refused = failureOf([...gapsOf(pass, inventory), ...refusalsOf(decisions)]);
  if (refused !== undefined) return refused;
  const inScope = decisions.filter((decision) => decision.kind === 'inScope');
  if (inScope.length === 0 && pass.spec.cleaning?.allowDiskless !== true) {
    return stepFailure(
      'noDevices',
      'the runner sees no disk to erase; set cleaning.allow_diskless if the host has none',
    );
  }
  const unplanned = differsFromPlan(
    pass,
    inScope.map(({ device }) => deviceIdentity(device)),
  );
  if (unplanned !== undefined) return unplanned;
  pass.record.devicePlan = inScope.map((decision) => planFor(pass, decision));
  lengthenRun(pass, run, erasures);
  for (const step of erasures) {
    const methods = inScope.map(({ method }) => methodIn(step.name, method));
    const careful = rerunClassOfAll(methods) === 'checkFirst';
    step.rerunClass = careful ? RerunClass.CHECK_FIRST : RerunClass.SAFE;
  }
  return undefined;
}

/** An order without devices would let the runner write to a disk that was plugged in since. */
function nothingToWrite({ steps }: RunView, { devices }: Inventory): RunFailure | undefined {
  if (devices.length > 0 || !steps.some(({ name }) => name === writeImageStep)) return undefined;
  return stepFailure('noRootDisk', 'the runner sees no disk that the image could come onto');
}

/**
 * Drives keep their data when they leave a volume. Where the policy accepts invisible drives,
 * nothing would notice them afterwards; so the old volumes are erased while they are visible.
 */
function drivesThatLeave({ spec }: PassView, { steps }: RunView, { devices }: Inventory) {
  const at = steps.findIndex(({ name }) => name === applyVolumesStep);
  const isOpen = at !== -1 && steps[at]?.state === StepState.PENDING;
  const volume = devices.find(({ raidVolume }) => raidVolume);
  if (!isOpen || volume === undefined) return undefined;
  if (spec.cleaning?.raidDrives !== RaidDrives.ACCEPT) return undefined;
  if (steps.slice(0, at).some((step) => erasesAtLevel(spec, step))) return undefined;
  const name = volume.serial || volume.device;
  const erasure = stepAtLevel(spec.cleaning);
  return stepFailure(
    'deviceRefused',
    `drives that leave RAID volume ${name} keep its data, and cleaning.raid_drives accepts ` +
      `drives that nobody sees: put ${erasure} before ${applyVolumesStep} as well`,
  );
}

/** Whether volumes are created before the clean itself writes to any disk. */
function areVolumesNext({ steps, currentStep }: RunView): boolean {
  const next = steps.slice(currentStep + 1).find((step) => {
    const { name } = step;
    const touches = name === applyVolumesStep || name === burnInDiskStep || isErasure(name);
    return touches && !isStepOver(step);
  });
  return next?.name === applyVolumesStep;
}

/** The method for one device, and how it is read back: fixed before the first write. */
function planFor(
  { spec, snapshot }: PassView,
  { device, method, hiddenBytesToRemove }: ScopeDecision & { kind: 'inScope' },
): agent.DevicePlan {
  const policy = verificationPolicy(spec, snapshot.fleet);
  const verification = planVerification({ method, sizeBytes: device.sizeBytes, policy });
  const delayMs = rereadDelayMs(method, snapshot.timing);
  return create(agent.DevicePlanSchema, {
    device: storageDeviceOf(device),
    method: methodToWire(method),
    verification: verificationToWire(verification),
    ...(hiddenBytesToRemove > 0 ? { removeHiddenArea: true } : {}),
    ...(delayMs > 0 ? { rereadDelay: durationFromMs(delayMs) } : {}),
  });
}

/** A run may last as long as its erasures: large disks take days. */
function lengthenRun(pass: PassView, run: Run, erasures: readonly RunStep[]): void {
  const { timing } = pass.snapshot;
  const stepsMs = erasures.map(({ name }) =>
    eraseTimeoutMs(
      pass.record.diskSpeeds,
      plansOfStep(pass.record.devicePlan, name),
      timing.cleanStepTimeoutMs,
    ),
  );
  const burnedInMs = burnInMs(run.steps, pass.record.devicePlan.length);
  const neededMs = stepsMs.reduce((sum, ms) => sum + ms, timing.runTimeoutMs + burnedInMs);
  run.deadline = timeAfter(pass, neededMs);
}

/**
 * The delay before it is read again, milliseconds; 0: it is not read again. Written data stays;
 * data that a device only claims to have discarded may return after a while.
 */
export function rereadDelayMs(
  method: ErasureMethod,
  timing: Pick<EngineTiming, 'rereadDelayMs'>,
): number {
  return method === 'overwrite' || method === 'metadataOnly' ? 0 : timing.rereadDelayMs;
}

/** The only method of a step; the plan decides for the others. */
const methodsOfSteps: ReadonlyMap<string, ErasureMethod> = new Map([
  [burnInDiskStep, 'overwrite'],
  [eraseMetadataStep, 'metadataOnly'],
]);

/**
 * The devices of the run's plan for one step: a list may erase metadata and whole devices, each
 * with its own method. Both the order and the check of the result use only this. A burn-in
 * overwrites them.
 */
export function plansOfStep(plans: readonly agent.DevicePlan[], step: string): agent.DevicePlan[] {
  const method = methodsOfSteps.get(step);
  if (method === undefined) return [...plans];
  return plans.map(({ device, removeHiddenArea = false }) =>
    create(agent.DevicePlanSchema, {
      ...(device === undefined ? {} : { device }),
      ...{ method: methodToWire(method), removeHiddenArea },
    }),
  );
}

function methodIn(step: string, method: ErasureMethod): ErasureMethod {
  return step === eraseMetadataStep ? 'metadataOnly' : method;
}

type StepByName = Pick<RunStep, 'name'>;

/** Whether a step erases at the level of the policy; a weaker one does not count. */
export function erasesAtLevel(
  spec: { readonly cleaning?: HostSpec['cleaning'] | undefined },
  { name }: StepByName,
): boolean {
  return name === eraseStep || name === stepAtLevel(spec.cleaning);
}

/**
 * Why an automatic clean would write and still not leave the host erased; or undefined. The failure
 * names what disables the erasing step: the host, its pool or the whole fleet.
 */
export function tooWeakFor(
  { labels, spec }: DeepReadonly<Pick<Host, 'labels' | 'spec'>>,
  { manual, steps }: { readonly manual: boolean; readonly steps: readonly StepByName[] },
  fleet: FleetSpec | undefined,
): RunFailure | undefined {
  const policy = spec?.cleaning;
  if (manual || steps.some((step) => erasesAtLevel({ cleaning: policy }, step))) return undefined;
  const step = stepAtLevel(policy);
  const disabling = disablingOf(step, { policy, pool: labels['pool'], fleet });
  const text = 'the plan has no erasure at the level of the cleaning policy';
  if (disabling === undefined) return stepFailure('notCertified', `${text}: no step of it erases`);
  const { by, owner } = disablerOf(disabling);
  const why = `${owner} sets the priority of ${step} to 0`;
  const pool = disabling.from === 'pool' ? disabling.pool : '';
  return stepFailure('notCertified', `${text}: ${why}`, '', disabledStep(step, by, pool));
}

/** Whether the host's own policy keeps the erasing step from its automatic cleans. */
export function isDisabledByHost({ cleaning: policy }: Pick<HostSpec, 'cleaning'>): boolean {
  const alone = { policy, pool: undefined, fleet: undefined };
  return disablingOf(stepAtLevel(policy), alone)?.from === 'host';
}

/** The step that erases exactly at the level of the policy. */
function stepAtLevel(policy: HostSpec['cleaning']): string {
  return policy?.level === ErasureLevel.METADATA_ONLY ? eraseMetadataStep : eraseStep;
}

function disablerOf({ from, pool }: Disabling): {
  readonly by: PriorityPlace;
  readonly owner: string;
} {
  switch (from) {
    case 'host':
      return { by: PriorityPlace.HOST, owner: 'its own cleaning policy' };
    case 'pool':
      return { by: PriorityPlace.POOL, owner: `the fleet, for hosts with the label pool=${pool},` };
    case 'fleet':
      return { by: PriorityPlace.FLEET, owner: 'the fleet, for every host,' };
  }
}

/** A run that was started from a plan erases exactly the devices of that plan. */
function differsFromPlan({ record }: PassView, found: readonly string[]): RunFailure | undefined {
  const planned = record.plannedErasure?.devices;
  if (planned === undefined) return undefined;
  const lost = planned.filter((device) => !found.includes(device));
  const added = found.filter((device) => !planned.includes(device));
  if (lost.length === 0 && added.length === 0) return undefined;
  const lines = [
    ...lost.map((device) => `disk ${device} of the plan is not there to be erased`),
    ...added.map((device) => `disk ${device} is not in the plan`),
  ];
  return stepFailure('planChanged', `nothing was erased: ${lines.join('; ')}`);
}

/** Why the erased machine is no longer complete: a disk of the plan is missing. */
export function missingDevice({ record }: PassView, inventory: Inventory): RunFailure | undefined {
  const planned = record.devicePlan.flatMap(({ device }) => {
    return device === undefined ? [] : [deviceIdentity(device)];
  });
  // A reader without a medium says the serial number that stood for its card before.
  const seen = inventory.devices.map(deviceFactsOf).filter(({ regions }) => regions.length > 0);
  const missing = presenceDifferences(seen, [], planned).find(({ kind }) => kind === 'missing');
  return missing && stepFailure('deviceChanged', describePresence(missing));
}

/**
 * The decision about every device for all erasures of a run: refused where one of them is not
 * possible. The method is that of the strongest erasure.
 */
export function decideForSteps(
  inventory: Inventory,
  erasures: readonly StepByName[],
  cleaning: HostSpec['cleaning'],
): ScopeDecision[] {
  const isMetadata = ({ name }: StepByName) => name === eraseMetadataStep;
  if (!erasures.some(isMetadata))
    return decideDevices(inventory, { metadataOnly: false }, cleaning);
  const weak = decideDevices(inventory, { metadataOnly: true }, cleaning);
  if (erasures.every(isMetadata)) return weak;
  return decideDevices(inventory, { metadataOnly: false }, cleaning).map((strong, index) => {
    const other = weak[index];
    return other?.kind === 'refused' ? other : strong;
  });
}

/**
 * The decision about every device when nothing is erased: which ones may be written with an image.
 * As in the runner, a USB disk is not the host's own there.
 */
export function decideToWrite(inventory: Inventory, cleaning: HostSpec['cleaning']) {
  const policy: ScopePolicy = { ...scopePolicy(cleaning), usb: orderedScopePolicy.usb };
  return decideScope(inventory.devices.map(deviceFactsOf), policy);
}

/** The decision about every device of an inventory for one method. */
export function decideDevices(
  inventory: Inventory,
  { metadataOnly }: { readonly metadataOnly: boolean },
  cleaning: HostSpec['cleaning'],
): ScopeDecision[] {
  const policy = scopePolicy(cleaning, metadataOnly ? 'metadataOnly' : undefined);
  return decideScope(inventory.devices.map(deviceFactsOf), policy);
}
