/** The evidence about one device: its outcome, and its part in the result of the step. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  boundDeviceLog,
  methodToWire,
  type RecordedVerdict,
  storageDeviceOf,
  verdictToWire,
  verificationToWire,
} from '@rackwright/erasure';
import * as agent from '@rackwright/messages/agent';
import { boundText } from '@rackwright/results';
import { DeviceError, type DeviceLoss, type HeldDevice } from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';
import type { HeldTarget } from './held-targets.ts';
import type { Target } from './targets.ts';
import { messageOf, type RegionChallenge } from './verify.ts';
import type { Work } from './work.ts';

/** The size of a verdict's reason, in evidence. */
const reasonBytesMax = 512;

export type OutcomeInit = MessageInitShape<typeof agent.DeviceOutcomeSchema>;

export interface DeviceResult {
  readonly identity: string;
  readonly name: string;
  readonly verdict: RecordedVerdict;
  /** The device or its tool failed while it was erased, rather than in the reading after. */
  readonly erasingFailed: boolean;
  /** It had been read as erased before. */
  readonly returned: boolean;
  readonly loss: DeviceLoss | undefined;
  readonly outcome: OutcomeInit;
}

/** How the work on one device ended. */
export interface DeviceVerdict {
  readonly verdict: RecordedVerdict;
  readonly erasingFailed?: boolean;
  readonly returned?: boolean;
  /** The loss of a device that could not be held; else it is `Work.loss`. */
  readonly loss?: DeviceLoss | undefined;
}

export interface ResultParts {
  readonly startMs: number;
  readonly logLinesMax: number;
  /** Absent: nothing was done to it. */
  readonly work?: Work;
}

/** The end of a target that is not to be touched. */
export function unerased(heldTarget: HeldTarget): DeviceVerdict {
  const reason = heldTarget.kind === 'refused' ? heldTarget.reason : 'the plan names no method';
  return { verdict: { kind: 'unverified', reason: `not erased: ${reason}` } };
}

/** The end of a target that could not be held. */
export function cannotHold({ message, loss }: DeviceError): DeviceVerdict {
  const verdict = { kind: 'unverified' as const, reason: `not erased: ${message}` };
  return { verdict, erasingFailed: true, loss };
}

/** Asks the device for its log, and puts everything together. */
export async function resultOf(
  { clock }: StepContext,
  target: Target,
  { verdict: found, erasingFailed = false, returned = false, loss: held }: DeviceVerdict,
  { startMs, logLinesMax, work }: ResultParts,
): Promise<DeviceResult> {
  const { decision: plan, device, identity, devicePlan } = target;
  const loss = held ?? work?.loss;
  const verdict = loss === undefined ? await explained(found, work?.held) : found;
  const log = work === undefined ? [] : [...work.log, ...(await deviceLog(work.held))];
  return {
    ...{ identity, name: device.name, verdict, erasingFailed, returned, loss },
    outcome: {
      device: storageDeviceOf(device),
      ...(plan.kind === 'erase' ? { method: methodToWire(plan.method) } : {}),
      ...verdictToWire(bounded(verdict)),
      verification: verificationToWire(target.verification),
      startTime: timestampFromMs(startMs),
      endTime: timestampFromMs(clock.nowMs()),
      log: boundDeviceLog(log, logLinesMax),
      notExamined: notExaminedOf(device),
      ...(work === undefined ? {} : countsOf(work)),
      ...(loss === undefined ? {} : { loss: lossesOnWire[loss] }),
      certificate: devicePlan.certificate,
      erasedSeed: devicePlan.erasedSeed,
    },
  };
}

/** Namespaces that a list of unexamined parts names at most. */
const namespacesNamedMax = 16;

/** Parts that the method may have reached, and that cannot be read. */
function notExaminedOf({ nvme }: Target['device']): string[] {
  const { hiddenNamespaces = [], namespacesUnlisted = false, unallocatedBytes = 0 } = nvme ?? {};
  const named = hiddenNamespaces.slice(0, namespacesNamedMax).join(', ');
  const count = hiddenNamespaces.length;
  return [
    ...(count > 0 ? [`${count} namespaces that are not attached, such as ${named}`] : []),
    ...(namespacesUnlisted
      ? ['namespaces that are not attached: it does not say whether any']
      : []),
    ...(unallocatedBytes > 0 ? [`${unallocatedBytes} bytes that are in no namespace`] : []),
  ];
}

/** The counts of the work. */
function countsOf(work: Work): OutcomeInit {
  return {
    challengeSeed: work.context.order.challengeSeed,
    challengeBlocksWritten: BigInt(work.challenged ? challengeBlocks(work.challenges) : 0),
    bytesWritten: BigInt(work.bytesWritten),
    errors: work.errors,
    methodMs: BigInt(work.methodMs),
    verifyMs: BigInt(work.verifyMs),
    readings: work.readings,
    bytesOfReadings: BigInt(work.bytesOfReadings),
  };
}

function challengeBlocks(challenges: readonly RegionChallenge[]): number {
  return challenges.reduce((sum, each) => sum + each.plan.challenges.length, 0);
}

const lossesOnWire: Readonly<Record<DeviceLoss, agent.DeviceLoss>> = {
  vanished: agent.DeviceLoss.VANISHED,
  changed: agent.DeviceLoss.CHANGED,
};

/** The part of a verdict in evidence and certificates. */
function bounded(verdict: RecordedVerdict): RecordedVerdict {
  return 'reason' in verdict
    ? { ...verdict, reason: boundText(verdict.reason, reasonBytesMax) }
    : verdict;
}

/** A device whose sanitize has failed may refuse everything until one succeeds. */
async function explained(
  verdict: RecordedVerdict,
  held: HeldDevice | undefined,
): Promise<RecordedVerdict> {
  if (verdict.kind !== 'unverified' || held === undefined) return verdict;
  try {
    const work = await held.ownWork();
    if (work === undefined) return verdict;
    return { ...verdict, reason: `${verdict.reason}; ${work.text}` };
  } catch (error) {
    // The reason that is known already stands alone.
    if (!(error instanceof DeviceError)) throw error;
    return verdict;
  }
}

async function deviceLog(held: HeldDevice): Promise<string[]> {
  try {
    return await held.readLog();
  } catch (error) {
    return [`the device's own log cannot be read: ${messageOf(error)}`];
  }
}
