/** The devices that a run would find, its effect on each, and the lost data. Pure. */

import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { sizeText } from '@rackwright/disk-image/size';
import {
  type DeviceFacts,
  describeVerification,
  deviceIdentity,
  type ErasureMethod,
  methodOf,
  orderedVerification,
  planRereading,
  planVerification,
  type ScopeDecision,
  type Verification,
} from '@rackwright/erasure';
import {
  type agent,
  DeviceFate,
  isErasure,
  type PlannedDevice,
  PlannedDeviceSchema,
  RunKind,
  type RunStep,
  StepState,
  verifyErasedStep,
  writeImageStep,
} from '@rackwright/messages';
import { decideForSteps, decideToWrite, rereadDelayMs } from '../erasure/device-plan.ts';
import { verificationPolicy } from '../erasure/policy.ts';
import { rereadings } from '../erasure/power-cycle.ts';
import {
  type DiskSpeed,
  expectedSpeed,
  type KnownSpeeds,
  measuredSpeed,
} from '../erasure/speeds.ts';
import type { PassView } from '../pass/pass.ts';
import type { StepView } from '../pass/read-only.ts';
import { isOfTemplate } from '../pass/step-names.ts';
import { fateOf, foreseeRoot } from './deployment.ts';
import { erasedBy, type Fate, isWrittenOver, lossBy } from './fate.ts';

/** Every device of the last inventory with its fate; none when there was no inventory. */
export function foreseeDevices(
  pass: PassView,
  kind: RunKind,
  steps: readonly RunStep[],
): PlannedDevice[] {
  const { snapshot, spec, record } = pass;
  const { inventory } = snapshot.facts;
  if (inventory === undefined) return [];
  const erasures = steps.filter(({ name }) => isErasure(name));
  const decisions =
    erasures.length === 0
      ? decideToWrite(inventory, spec.cleaning)
      : decideForSteps(inventory, erasures, spec.cleaning);
  const isDeployment = kind === RunKind.PROVISION || kind === RunKind.REIMAGE;
  const root = foreseeRoot(decisions, spec.rootDisk, record.deploy);
  const keptFate = (decision: ScopeDecision): Fate => {
    if (decision.kind === 'listed') return leftAlone(decision.reason);
    return isDeployment ? fateOf(decision.device, root, record.deploy) : fateBeside(steps);
  };
  const readings = readingsOf(pass, steps);
  return decisions.map((decision) => {
    const { serial, wwn, model, sizeBytes, name } = decision.device;
    return create(PlannedDeviceSchema, {
      serial,
      wwn,
      model,
      sizeBytes: BigInt(sizeBytes),
      kernelName: name,
      ...(erasures.length > 0 ? erasedFate(decision) : keptFate(decision)),
      ...readings(decision),
    });
  });
}

/** One reading of a device: its kind, and how often that many locations are read. */
interface Reading {
  readonly verification: Verification;
  readonly method: ErasureMethod;
  /** Later readings read the locations of the erasure and as many new ones. */
  readonly when: 'first' | 'afterDelay' | 'afterPowerCycle';
  /** The pause before it, milliseconds. */
  readonly delayMs: number;
}

type ReadBack = MessageInitShape<typeof PlannedDeviceSchema>;

/** How a run reads each device: after its erasure, and after a power cycle before or after it. */
function readingsOf(
  pass: PassView,
  steps: readonly RunStep[],
): (decision: ScopeDecision) => ReadBack {
  const policy = verificationPolicy(pass.spec, pass.snapshot.fleet);
  const erased = steps.findLastIndex(({ name }) => isErasure(name));
  const reads = (from: number, to: number) =>
    steps.slice(from, to).some(({ name }) => name === verifyErasedStep);
  const due = reads(0, erased === -1 ? steps.length : erased) ? rereadings(pass) : [];
  const isReadAtEnd = erased !== -1 && reads(erased, steps.length);
  return (decision) => {
    const readings: Reading[] = [];
    const key = deviceIdentity(decision.device);
    for (const plan of due) {
      const method = methodOf(plan.method);
      if (method === undefined || deviceKey(plan) !== key) continue;
      const verification = orderedVerification(plan);
      readings.push({ verification, method, when: 'afterPowerCycle', delayMs: 0 });
    }
    const { sizeBytes } = decision.device;
    if (erased !== -1 && decision.kind === 'inScope') {
      const { method } = decision;
      const question = { method, sizeBytes, policy };
      const verification = planVerification(question);
      const delayMs = rereadDelayMs(method, pass.snapshot.timing);
      readings.push({ verification, method, when: 'first', delayMs: 0 });
      if (delayMs > 0) readings.push({ verification, method, when: 'afterDelay', delayMs });
      const last = { verification: planRereading(verification, question), method, delayMs: 0 };
      if (isReadAtEnd) readings.push({ ...last, when: 'afterPowerCycle' });
    }
    return readBack(pass.record.diskSpeeds, decision.device, readings, policy.confidence);
  };
}

/** A disk may be reported as so slow that its time exceeds any google.protobuf.Duration. */
const longestSeconds = 315_576_000_000;

/** How a device is read, the total cost, and what the first reading can miss. */
function readBack(
  known: KnownSpeeds,
  device: DeviceFacts,
  readings: readonly Reading[],
  confidence: number,
): ReadBack {
  const shown = readings.find(({ when }) => when === 'first') ?? readings[0];
  if (shown === undefined) return {};
  const { sizeBytes } = device;
  const speed = expectedSpeed(known, device);
  const measured = measuredSpeed(known, device);
  const isWritten = shown.method === 'overwrite' && shown.when === 'first';
  const used = new Set<keyof DiskSpeed>(isWritten ? ['writtenPerSecond'] : []);
  let seconds = isWritten ? sizeBytes / speed.writtenPerSecond : 0;
  let reads = 0;
  const lines = readings.map(({ verification, method, when, delayMs }) => {
    const one = describeVerification({ verification, method, sizeBytes, speed, confidence });
    used.add(verification.level === 'full' ? 'bytesPerSecond' : 'readsPerSecond');
    const times = when !== 'first' && verification.level === 'sampled' ? 2 : 1;
    reads += times * one.reads;
    seconds += times * one.seconds + delayMs / 1_000;
    return one;
  });
  return {
    verification: readings.map(textOf).join(', '),
    reads: BigInt(reads),
    time: durationFromMs(Math.ceil(Math.min(seconds, longestSeconds)) * 1_000),
    timeFromMeasurement: [...used].every((figure) => (measured?.[figure] ?? 0) > 0),
    canMiss: lines[readings.indexOf(shown)]?.canMiss ?? '',
  };
}

function textOf({ verification, when, delayMs }: Reading): string {
  const again = whenText(when, delayMs);
  if (verification.level === 'full') return `${again}whole`;
  const count = `${again}${verification.places} places`;
  return when === 'first' ? count : `${count} and as many new ones`;
}

function whenText(when: Reading['when'], delayMs: number): string {
  switch (when) {
    case 'first':
      return '';
    case 'afterDelay':
      return `again after ${Math.ceil(delayMs / 1_000)} s: `;
    case 'afterPowerCycle':
      return 'again after the power cycle: ';
  }
}

function deviceKey({ device }: agent.DevicePlan): string {
  return device === undefined ? '' : deviceIdentity(device);
}

function erasedFate(decision: ScopeDecision): Fate {
  switch (decision.kind) {
    case 'inScope':
      return erasedBy(decision);
    case 'listed':
      return leftAlone(decision.reason);
    case 'refused': {
      const fate = `cannot be erased: it ${decision.reason}; the run would fail`;
      return { deviceFate: DeviceFate.NOT_ERASABLE, fate };
    }
  }
}

function leftAlone(reason: string): Fate {
  return { deviceFate: DeviceFate.LEFT_ALONE, fate: `left alone: ${reason}` };
}

function fateBeside(steps: readonly RunStep[]): Fate {
  const writers = steps.filter((step) => mayDestroy(step)).map(stepTitle);
  if (writers.length === 0) return { deviceFate: DeviceFate.KEPT, fate: 'kept' };
  const fate = `may be written by ${[...new Set(writers)].join(', ')}`;
  return { deviceFate: DeviceFate.MAY_BE_WRITTEN, fate };
}

/** Whether it may lose data that no erasure names. */
function mayDestroy({ destructive, name, state }: StepView): boolean {
  return destructive && state !== StepState.SKIPPED && !isErasure(name);
}

function stepTitle(step: StepView): string {
  return isOfTemplate(step) ? `${step.title} (${step.name})` : step.name;
}

/** The lost data, one line each. */
export function lossOf(devices: readonly PlannedDevice[], steps: readonly RunStep[]): string[] {
  const lost = devices.flatMap((device) => {
    const loss = lossBy(device);
    return loss === undefined ? [] : [`${deviceText(device)}: ${loss}`];
  });
  // The image's disk is usually known; then the disk's line has more details.
  const isShown = (step: RunStep) => step.name === writeImageStep && devices.some(isWrittenOver);
  const unseen = devices.length === 0 && steps.some(({ name }) => isErasure(name));
  return [
    ...lost,
    ...(unseen ? ['every disk of its own that the runner finds: all that is on it'] : []),
    ...steps
      .filter((step) => mayDestroy(step) && !isShown(step))
      .map((step) => `${stepTitle(step)}: whatever it writes over`),
  ];
}

/** "disk S3Z8 (SAMSUNG MZ7, 480.1 GB)" */
export function deviceText(device: {
  readonly serial: string;
  readonly wwn: string;
  readonly model: string;
  readonly sizeBytes: bigint;
}): string {
  const { serial, wwn, model, sizeBytes } = device;
  const size = sizeText(sizeBytes);
  return `disk ${serial || wwn || 'without a name'} (${model === '' ? size : `${model}, ${size}`})`;
}
