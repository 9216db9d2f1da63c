/**
 * Erases one device: challenge, method, verdict, in this order and never another.
 *
 * Invariants:
 * D1 Always answers an outcome; what the device refuses becomes the outcome's words.
 * D2 The verdict is read after the erasing call, whatever that call said, unless it failed.
 * D3 `mode: check` writes nothing, and proves nothing without an earlier attempt's challenge.
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
} from '@rackwright/erasure';
import { boundText } from '@rackwright/results';
import { DeviceError, type OpenRegion, transferBytesMax } from '../block-devices.ts';
import type { StepContext } from '../step.ts';
import type { Target } from './targets.ts';
import {
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
  readonly outcome: MessageInitShape<typeof agent.DeviceOutcomeSchema>;
}

/** Told how much of the device is done, 0 to 1. */
export type DeviceProgress = (fraction: number, what: string) => void;

interface Work {
  readonly context: StepContext;
  readonly target: Target;
  readonly challenges: readonly RegionChallenge[];
  readonly method: ErasureMethod;
  readonly log: string[];
  readonly progress: DeviceProgress;
  /** The challenge has been read back as written, by this attempt or the one that is checked. */
  challenged: boolean;
}

export interface DeviceTask {
  readonly target: Target;
  /** For checks: an earlier attempt wrote the challenge. */
  readonly challengeProved: boolean;
  /** The device's share of the log lines that one step's evidence may hold. */
  readonly logLinesMax: number;
  readonly progress: DeviceProgress;
}

/** Erases or checks one target. */
export async function eraseDevice(
  context: StepContext,
  { target, challengeProved, logLinesMax, progress }: DeviceTask,
): Promise<DeviceResult> {
  const startMs = context.clock.nowMs();
  const log: string[] = [];
  const { plan, device, identity } = target;
  let verdict: RecordedVerdict = { kind: 'unverified', reason: 'nothing was done' };
  let erasingFailed = false;
  let blocksWritten = 0;
  if (plan.kind === 'refused') {
    verdict = { kind: 'unverified', reason: `not erased: ${plan.reason}` };
  } else {
    const { method } = plan;
    const challenges = planDevice(device, identity, method, context.order.challengeSeed);
    const work = { context, target, challenges, method, log, progress, challenged: false };
    if (context.order.mode === agent.StepMode.CHECK) {
      work.challenged = challengeProved;
      verdict = await check(work);
    } else {
      const failure = await erase(work);
      erasingFailed = failure !== undefined;
      verdict = failure ?? (await judge(work));
    }
    if (work.challenged) blocksWritten = challengeBlocks(challenges);
  }
  log.push(...(await deviceLog(context, device)));
  return {
    identity,
    name: device.name,
    verdict,
    erasingFailed,
    outcome: {
      device: storageDeviceOf(device),
      ...(plan.kind === 'erase' ? { method: methodToWire(plan.method) } : {}),
      ...verdictToWire(bounded(verdict)),
      challengeBlocksWritten: BigInt(blocksWritten),
      startTime: timestampFromMs(startMs),
      endTime: timestampFromMs(context.clock.nowMs()),
      log: boundDeviceLog(log, logLinesMax),
      challengeSeed: context.order.challengeSeed,
    },
  };
}

/** What evidence and certificates carry of a verdict. */
function bounded(verdict: RecordedVerdict): RecordedVerdict {
  return 'reason' in verdict
    ? { ...verdict, reason: boundText(verdict.reason, reasonBytesMax) }
    : verdict;
}

/** Challenge and method. Answers the failure, or undefined when the verdict may be read. */
async function erase(work: Work): Promise<RecordedVerdict | undefined> {
  const { context, target, log } = work;
  const { identity } = target;
  try {
    stopIfCancelled(context);
    await context.stage(identity, 'begun');
    // The devices before it took hours: the permission of the order may be over (R11).
    const may = await context.mayBegin();
    if (may.kind === 'over') throw new DeviceError(`not begun: ${may.reason}`);
    stopIfCancelled(context);
    await challengeRegions(work);
    work.challenged = true;
    await context.stage(identity, 'challenged');
    context.crashPoint('runner.challenged');
    await applyMethod(work);
    await context.stage(identity, 'erased');
    context.crashPoint('runner.erased');
    return undefined;
  } catch (error) {
    const words = wordsOf(error);
    log.push(words);
    return { kind: 'unverified', reason: words };
  }
}

async function judge(work: Work): Promise<RecordedVerdict> {
  const { context, target, challenges, method } = work;
  if (context.verdictSwitchedOff) {
    context.log.warn({ device: target.identity }, 'THE VERDICT IS SWITCHED OFF: nothing is proved');
    return { kind: 'switchedOff' };
  }
  work.progress(0.95, 'reading back');
  const verdict = await readVerdict(context.devices, target.device, challenges, method, true);
  await context.stage(target.identity, 'verified');
  context.crashPoint('runner.verified');
  return verdict;
}

async function check(work: Work): Promise<RecordedVerdict> {
  const { context, target, challenges, method, challenged } = work;
  return await readVerdict(context.devices, target.device, challenges, method, challenged);
}

function challengeBlocks(challenges: readonly RegionChallenge[]): number {
  return challenges.reduce((sum, each) => sum + each.plan.challenges.length, 0);
}

async function challengeRegions(work: Work): Promise<void> {
  work.progress(0, 'challenge');
  for (const challenge of work.challenges) {
    await withRegion(work, challenge, (open) => writeChallenge(open, challenge));
    const count = challenge.plan.challenges.length;
    work.log.push(`${challenge.region.name}: ${count} challenge blocks written and read back`);
  }
}

async function applyMethod(work: Work): Promise<void> {
  const { context, target, method, log } = work;
  switch (method) {
    case 'nvmeFormatCrypto':
    case 'nvmeFormat': {
      const mode = method === 'nvmeFormatCrypto' ? 'crypto' : 'userData';
      work.progress(0.05, method);
      stopIfCancelled(context);
      log.push(...(await context.devices.nvmeFormat(target.device, mode)));
      return;
    }
    case 'discard':
      for (const challenge of work.challenges) await discardRegion(work, challenge);
      return;
    case 'overwrite':
    case 'metadataOnly':
      await overwriteSpans(work);
      return;
  }
}

async function discardRegion(work: Work, challenge: RegionChallenge): Promise<void> {
  work.progress(0.05, 'discard');
  stopIfCancelled(work.context);
  await withRegion(work, challenge, async (open) => {
    const { sizeBytes, discardGranularityBytes = 1 } = challenge.region;
    work.log.push(...(await open.discard(0, sizeBytes)));
    const tailBytes = sizeBytes % discardGranularityBytes;
    if (tailBytes > 0) {
      await writeZeros(work, open, { offset: sizeBytes - tailBytes, length: tailBytes });
      work.log.push(`${challenge.region.name}: ${tailBytes} bytes at its end overwritten`);
    }
    await open.flush();
  });
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
  for (const challenge of work.challenges) {
    await withRegion(work, challenge, async (open) => {
      for (const span of challenge.spans) {
        await writeZeros(work, open, span, (bytes) => {
          done += bytes;
          work.progress(0.05 + (0.9 * done) / total, work.method);
        });
      }
      await open.flush();
    });
    const bytes = challenge.spans.reduce((sum, span) => sum + span.length, 0);
    work.log.push(`${challenge.region.name}: ${bytes} bytes overwritten with zeros`);
  }
}

async function withRegion(
  work: Work,
  challenge: RegionChallenge,
  use: (open: OpenRegion) => Promise<void>,
): Promise<void> {
  const open = await work.context.devices.open(work.target.device, challenge.region);
  try {
    await use(open);
  } finally {
    await open.close();
  }
}

function stopIfCancelled(context: StepContext): void {
  if (context.signal.aborted) throw new DeviceError('cancelled before it was done');
}

async function deviceLog(context: StepContext, device: DeviceFacts): Promise<string[]> {
  try {
    return await context.devices.readLog(device);
  } catch (error) {
    return [`the device's own log cannot be read: ${wordsOf(error)}`];
  }
}
