/**
 * Erases one device: challenge, method, verdict, in this order and never another.
 *
 * Invariants:
 * D1 Always answers an outcome; what the device refuses becomes the outcome's words.
 * D2 The verdict is read after the erasing call, whatever that call said, unless it failed.
 * D3 `mode: check` writes nothing, and proves nothing without an earlier attempt's challenge.
 * D5 Everything is done to the device as it is held. It is confirmed before each phase; once it is
 *    lost, nothing more is written and the outcome says so.
 * D4 The outcome counts challenge blocks only when they were read back as written.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/api';
import {
  boundDeviceLog,
  type DeviceFacts,
  type ErasureMethod,
  methodToWire,
  type RecordedVerdict,
  type Span,
  storageDeviceOf,
  verdictToWire,
  verificationToWire,
} from '@rackwright/erasure';
import { boundText } from '@rackwright/results';
import {
  DeviceError,
  type DeviceLoss,
  type HeldDevice,
  type OpenRegion,
  transferBytesMax,
} from '../block-devices.ts';
import type { StepContext } from '../step.ts';
import type { Grip } from './grip.ts';
import {
  deviceErrorOf,
  pairRegions,
  planDevice,
  type RegionChallenge,
  readVerdict,
  wordsOf,
  writeChallenge,
} from './verify.ts';

/** Of a verdict's reason, in evidence. */
const reasonBytesMax = 512;

export interface DeviceResult {
  readonly identity: string;
  readonly name: string;
  readonly verdict: RecordedVerdict;
  /** The device or its tool failed while it was erased, rather than in the reading after. */
  readonly erasingFailed: boolean;
  readonly loss: DeviceLoss | undefined;
  readonly outcome: MessageInitShape<typeof agent.DeviceOutcomeSchema>;
}

/** Told how much of the device is done, 0 to 1. */
export type DeviceProgress = (fraction: number, what: string) => void;

interface Work {
  readonly context: StepContext;
  readonly identity: string;
  readonly held: HeldDevice;
  readonly device: DeviceFacts;
  readonly challenges: readonly RegionChallenge[];
  readonly method: ErasureMethod;
  readonly log: string[];
  readonly progress: DeviceProgress;
  /** The challenge has been read back as written, by this attempt or the one that is checked. */
  challenged: boolean;
  loss: DeviceLoss | undefined;
}

export interface DeviceTask {
  readonly grip: Grip;
  /** For checks: an earlier attempt wrote the challenge. */
  readonly challengeProved: boolean;
  /** The device's share of the log lines that one step's evidence may hold. */
  readonly logLinesMax: number;
  readonly progress: DeviceProgress;
}

/** Erases or checks one target. */
export async function eraseDevice(
  context: StepContext,
  { grip, challengeProved, logLinesMax, progress }: DeviceTask,
): Promise<DeviceResult> {
  const startMs = context.clock.nowMs();
  const log: string[] = [];
  const { plan, device, identity } = grip.target;
  let end: DeviceEnd = { verdict: { kind: 'unverified', reason: 'nothing was done' } };
  if (grip.kind === 'refused') {
    end = { verdict: { kind: 'unverified', reason: `not erased: ${grip.reason}` } };
  } else if (grip.kind === 'failed') {
    end = failedEnd(grip.error);
  } else if (plan.kind === 'erase') {
    const { method } = plan;
    const { held } = grip;
    const challenges = planDevice(grip.target, method, context.order.challengeSeed);
    const work = { context, identity, held, device, challenges, method, log, progress };
    end = await handle({ ...work, challenged: challengeProved, loss: undefined });
    log.push(...(await deviceLog(held)));
  }
  const { verdict, erasingFailed = false, blocksWritten = 0, loss } = end;
  return {
    identity,
    name: device.name,
    verdict,
    erasingFailed,
    loss,
    outcome: {
      device: storageDeviceOf(device),
      ...(plan.kind === 'erase' ? { method: methodToWire(plan.method) } : {}),
      ...verdictToWire(bounded(verdict)),
      verification: verificationToWire(grip.target.verification),
      challengeBlocksWritten: BigInt(blocksWritten),
      startTime: timestampFromMs(startMs),
      endTime: timestampFromMs(context.clock.nowMs()),
      log: boundDeviceLog(log, logLinesMax),
      challengeSeed: context.order.challengeSeed,
      ...(loss === undefined ? {} : { loss: lossesOnWire[loss] }),
    },
  };
}

const lossesOnWire: Readonly<Record<DeviceLoss, agent.DeviceLoss>> = {
  vanished: agent.DeviceLoss.VANISHED,
  changed: agent.DeviceLoss.CHANGED,
};

/** How the work on one device ended. */
interface DeviceEnd {
  readonly verdict: RecordedVerdict;
  readonly erasingFailed?: boolean;
  readonly blocksWritten?: number;
  readonly loss?: DeviceLoss | undefined;
}

function failedEnd(error: DeviceError): DeviceEnd {
  const verdict = { kind: 'unverified' as const, reason: `not erased: ${error.message}` };
  return { verdict, erasingFailed: true, loss: error.loss };
}

async function handle(work: Work): Promise<DeviceEnd> {
  let verdict: RecordedVerdict;
  let erasingFailed = false;
  if (work.context.order.mode === agent.StepMode.CHECK) {
    verdict = await check(work);
  } else {
    work.challenged = false;
    const failure = await erase(work);
    erasingFailed = failure !== undefined;
    verdict = failure ?? (await judge(work));
  }
  const lost = await whatIsLost(work, verdict);
  const blocksWritten = work.challenged ? challengeBlocks(work.challenges) : 0;
  return { verdict: lost ?? verdict, erasingFailed, blocksWritten, loss: work.loss };
}

/**
 * The last look at the device: what was read counts only for the device that is still there. A
 * device that is proved not to be erased stays so.
 */
async function whatIsLost(
  work: Work,
  verdict: RecordedVerdict,
): Promise<RecordedVerdict | undefined> {
  if (work.loss !== undefined) return undefined;
  try {
    await work.held.confirm();
    return undefined;
  } catch (error) {
    const reason = noteFailure(work, error);
    return verdict.kind === 'notErased' ? undefined : { kind: 'unverified', reason };
  }
}

/** Keeps the loss, and answers the words. */
function noteFailure(work: Work, error: unknown): string {
  const { message, loss } = deviceErrorOf(error);
  work.loss ??= loss;
  work.log.push(message);
  return message;
}

/** What evidence and certificates carry of a verdict. */
function bounded(verdict: RecordedVerdict): RecordedVerdict {
  return 'reason' in verdict
    ? { ...verdict, reason: boundText(verdict.reason, reasonBytesMax) }
    : verdict;
}

/** Challenge and method. Answers the failure, or undefined when the verdict may be read. */
async function erase(work: Work): Promise<RecordedVerdict | undefined> {
  const { context, identity } = work;
  try {
    stopIfCancelled(context);
    await context.stage(identity, 'begun');
    // The devices before it took hours: the permission of the order may be over (R11).
    const may = await context.mayBegin();
    if (may.kind === 'over') throw new DeviceError(`not begun: ${may.reason}`);
    stopIfCancelled(context);
    await work.held.confirm();
    await challengeRegions(work);
    work.challenged = true;
    await context.stage(identity, 'challenged');
    context.crashPoint('runner.challenged');
    await work.held.confirm();
    await applyMethod(work);
    await work.held.confirm();
    await context.stage(identity, 'erased');
    context.crashPoint('runner.erased');
    return undefined;
  } catch (error) {
    return { kind: 'unverified', reason: noteFailure(work, error) };
  }
}

async function judge(work: Work): Promise<RecordedVerdict> {
  const { context, identity, held, challenges, method } = work;
  if (context.verdictSwitchedOff) {
    context.log.warn({ device: identity }, 'THE VERDICT IS SWITCHED OFF: nothing is proved');
    return { kind: 'switchedOff' };
  }
  work.progress(0.95, 'reading back');
  const verdict = await readVerdict(held, work.device, challenges, method, true);
  await context.stage(identity, 'verified');
  context.crashPoint('runner.verified');
  return verdict;
}

async function check(work: Work): Promise<RecordedVerdict> {
  const { held, device, challenges, method, challenged } = work;
  return await readVerdict(held, device, challenges, method, challenged);
}

function challengeBlocks(challenges: readonly RegionChallenge[]): number {
  return challenges.reduce((sum, each) => sum + each.plan.challenges.length, 0);
}

async function challengeRegions(work: Work): Promise<void> {
  work.progress(0, 'challenge');
  for (const [open, challenge] of openRegions(work)) {
    await writeChallenge(open, challenge);
    const count = challenge.plan.challenges.length;
    work.log.push(`${challenge.region.name}: ${count} challenge blocks written and read back`);
  }
}

async function applyMethod(work: Work): Promise<void> {
  const { context, held, method, log } = work;
  switch (method) {
    case 'nvmeFormatCrypto':
    case 'nvmeFormat': {
      const mode = method === 'nvmeFormatCrypto' ? 'crypto' : 'userData';
      work.progress(0.05, method);
      stopIfCancelled(context);
      log.push(...(await held.nvmeFormat(mode)));
      return;
    }
    case 'discard':
      for (const [open, challenge] of openRegions(work)) {
        await discardRegion(work, open, challenge);
      }
      return;
    case 'overwrite':
    case 'metadataOnly':
      await overwriteSpans(work);
      return;
  }
}

async function discardRegion(
  work: Work,
  open: OpenRegion,
  { region }: RegionChallenge,
): Promise<void> {
  work.progress(0.05, 'discard');
  stopIfCancelled(work.context);
  const { sizeBytes, discardGranularityBytes = 1 } = region;
  work.log.push(...(await open.discard(0, sizeBytes)));
  const tailBytes = sizeBytes % discardGranularityBytes;
  if (tailBytes > 0) {
    await writeZeros(work, open, { offset: sizeBytes - tailBytes, length: tailBytes });
    work.log.push(`${region.name}: ${tailBytes} bytes at its end overwritten`);
  }
  await open.flush();
}

/** Stops between two transfers when it is cancelled. `tell` gets what one transfer wrote. */
async function writeZeros(
  work: Work,
  open: OpenRegion,
  span: Span,
  tell: (bytes: number) => void = () => {},
): Promise<void> {
  for (let at = 0; at < span.length; at += transferBytesMax) {
    stopIfCancelled(work.context);
    const length = Math.min(transferBytesMax, span.length - at);
    await open.writeZeros(span.offset + at, length);
    tell(length);
  }
}

async function overwriteSpans(work: Work): Promise<void> {
  const total = work.challenges
    .flatMap(({ spans }) => spans)
    .reduce((sum, span) => sum + span.length, 0);
  let done = 0;
  for (const [open, challenge] of openRegions(work)) {
    for (const span of challenge.spans) {
      await writeZeros(work, open, span, (bytes) => {
        done += bytes;
        work.progress(0.05 + (0.9 * done) / total, work.method);
      });
    }
    await open.flush();
    const bytes = challenge.spans.reduce((sum, span) => sum + span.length, 0);
    work.log.push(`${challenge.region.name}: ${bytes} bytes overwritten with zeros`);
  }
}

/** Every region of the device with what is planned for it. */
function openRegions({ held, challenges }: Work): [OpenRegion, RegionChallenge][] {
  return pairRegions(held, challenges);
}

function stopIfCancelled(context: StepContext): void {
  if (context.signal.aborted) throw new DeviceError('cancelled before it was done');
}

async function deviceLog(held: HeldDevice): Promise<string[]> {
  try {
    return await held.readLog();
  } catch (error) {
    return [`the device's own log cannot be read: ${wordsOf(error)}`];
  }
}
