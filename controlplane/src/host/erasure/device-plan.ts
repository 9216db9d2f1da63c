/** Which devices a clean erases and how, fixed by the run's first inventory (DESIGN §5, Scope). */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  ErasureLevel,
  eraseMetadataStep,
  eraseStep,
  type HostSpec,
  type Inventory,
  RerunClass,
  type Run,
  type RunFailure,
  RunKind,
  type RunStep,
} from '@rackwright/api';
import {
  decideScope,
  defaultScopePolicy,
  describeGap,
  describePresence,
  deviceFactsOf,
  deviceIdentity,
  type ErasureMethod,
  methodToWire,
  presenceDifferences,
  rerunClassOfAll,
  type ScopeDecision,
  signGaps,
  storageDeviceOf,
  storageSignsOf,
} from '@rackwright/erasure';
import { isErasure, stepFailure } from '../turn/step-failure.ts';
import type { Turn } from '../turn/turn.ts';
import { checkMachine } from './identity.ts';

/** Kinds of run that look at the machine before they write onto it. */
const writes: ReadonlySet<RunKind> = new Set([RunKind.CLEAN, RunKind.PROVISION, RunKind.REIMAGE]);

/**
 * Writes the device plan into the record, or returns why this host cannot be cleaned: not the
 * right machine, a disk that nobody can see or erase, no disk at all, or a list of steps after
 * which the host would not count as erased.
 */
export function planDevices(turn: Turn, run: Run, inventory: Inventory): RunFailure | undefined {
  if (!writes.has(run.kind)) return undefined;
  const wrongMachine = checkMachine(turn, inventory.system);
  if (wrongMachine !== undefined || run.kind !== RunKind.CLEAN) return wrongMachine;
  const tooWeak = tooWeakFor(turn.spec, run);
  if (tooWeak !== undefined) return tooWeak;
  const erasures = run.steps.filter((step) => isErasure(step.name));
  if (erasures.length === 0) return undefined;
  const unseen = unseenStorage(inventory);
  if (unseen !== undefined) return unseen;
  const decisions = decideForSteps(inventory, erasures);
  const refused = decisions.find((decision) => decision.kind === 'refused');
  if (refused !== undefined) {
    const name = refused.device.serial || refused.device.name;
    return stepFailure('deviceRefused', `disk ${name} cannot be erased: it ${refused.reason}`);
  }
  const inScope = decisions.filter((decision) => decision.kind === 'inScope');
  if (inScope.length === 0 && turn.spec.cleaning?.allowDiskless !== true) {
    return stepFailure(
      'noDevices',
      'the runner sees no disk to erase; set cleaning.allow_diskless if the host has none',
    );
  }
  const unplanned = differsFromPlan(
    turn,
    inScope.map(({ device }) => deviceIdentity(device)),
  );
  if (unplanned !== undefined) return unplanned;
  turn.record.devicePlan = inScope.map((decision) =>
    create(agent.DevicePlanSchema, {
      device: storageDeviceOf(decision.device),
      method: methodToWire(decision.method),
    }),
  );
  for (const step of erasures) {
    const methods = inScope.map(({ method }) => methodIn(step.name, method));
    const careful = rerunClassOfAll(methods) === 'checkFirst';
    step.rerunClass = careful ? RerunClass.CHECK_FIRST : RerunClass.SAFE;
  }
  return undefined;
}

/**
 * What one step does to the devices of the run's plan: a list may erase metadata and whole devices,
 * each by a method of its own. Ordered, and judged, by this alone.
 */
export function plansOfStep(plans: readonly agent.DevicePlan[], step: string): agent.DevicePlan[] {
  if (step !== eraseMetadataStep) return [...plans];
  const method = methodToWire('metadataOnly');
  return plans.map((plan) => create(agent.DevicePlanSchema, { ...plan, method }));
}

function methodIn(step: string, method: ErasureMethod): ErasureMethod {
  return step === eraseMetadataStep ? 'metadataOnly' : method;
}

type StepByName = Pick<RunStep, 'name'>;

/** Whether a step erases at the level of the policy; a weaker one does not count. */
export function erasesAtLevel(spec: Pick<HostSpec, 'cleaning'>, { name }: StepByName): boolean {
  const weakEnough = spec.cleaning?.level === ErasureLevel.METADATA_ONLY;
  return name === eraseStep || (weakEnough && name === eraseMetadataStep);
}

/** Why an automatic clean would write, and still not leave the host erased; or undefined. */
export function tooWeakFor(
  spec: Pick<HostSpec, 'cleaning'>,
  { manual, steps }: { readonly manual: boolean; readonly steps: readonly StepByName[] },
): RunFailure | undefined {
  if (manual || steps.some((step) => erasesAtLevel(spec, step))) return undefined;
  return stepFailure(
    'notCertified',
    'the plan has no erasure at the level of the cleaning policy: correct priority_overrides',
  );
}

/** A run that was started by a plan erases what that plan names, and nothing else. */
function differsFromPlan({ record }: Turn, found: readonly string[]): RunFailure | undefined {
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

/** Why there may be disks that the runner does not see, or undefined. */
export function unseenStorage(inventory: Inventory): RunFailure | undefined {
  const gaps = signGaps(storageSignsOf(inventory), inventory.devices.map(deviceFactsOf));
  if (gaps.length === 0) return undefined;
  return stepFailure('deviceRefused', gaps.map(describeGap).join('; '));
}

/** Why the machine that was erased is not whole any more: a disk of the plan is gone from it. */
export function missingDevice({ record }: Turn, inventory: Inventory): RunFailure | undefined {
  const planned = record.devicePlan.flatMap(({ device }) => {
    return device === undefined ? [] : [deviceIdentity(deviceFactsOf(device))];
  });
  const seen = inventory.devices.map(deviceFactsOf);
  const missing = presenceDifferences(seen, [], planned).find(({ kind }) => kind === 'missing');
  return missing && stepFailure('deviceChanged', describePresence(missing));
}

/**
 * The decision over every device for all the erasures of a run: refused where one of them cannot
 * erase it. The method is that of the strongest.
 */
export function decideForSteps(
  inventory: Inventory,
  erasures: readonly StepByName[],
): ScopeDecision[] {
  const isMetadata = ({ name }: StepByName) => name === eraseMetadataStep;
  if (!erasures.some(isMetadata)) return decideDevices(inventory, false);
  const weak = decideDevices(inventory, true);
  if (erasures.every(isMetadata)) return weak;
  return decideDevices(inventory, false).map((strong, index) => {
    const other = weak[index];
    return other?.kind === 'refused' ? other : strong;
  });
}

/** The decision over every device of an inventory for one method. */
export function decideDevices(inventory: Inventory, metadataOnly: boolean): ScopeDecision[] {
  return decideScope(inventory.devices.map(deviceFactsOf), {
    ...defaultScopePolicy,
    method: metadataOnly ? 'metadataOnly' : 'strongest',
  });
}
