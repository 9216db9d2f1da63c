/** Works one held disk: writes the pattern, then reads it back. */
import { type ByteSpan, regionLabel, regionSeed } from '@rackwright/erasure';
import type { Target } from '../erase/targets.ts';
import {
  borrowTransfers,
  inFlight,
  readPieces,
  splitSpans,
  type TransferGate,
} from '../erase/transfers.ts';
import { deviceErrorOf } from '../erase/verify.ts';
import { DeviceError, type HeldDevice, type OpenRegion } from '../machine/block-devices.ts';
import type { StepContext } from '../steps/step.ts';
import type { TemperatureMonitor } from './heat.ts';
import { contentOf, Pattern, pieceBytesMax } from './pattern.ts';
import { type Finding, speedText } from './result.ts';
import { spread, spreadBytes } from './spread.ts';

/** No logical block is smaller: each has a stamp of its own. */
const unitBytes = 512;
/** Failed transfers and wrong blocks until it is enough of one disk. */
const errorsMax = 1_000;
/** Between two looks at the kernel and the sensors while transfers go on, milliseconds. */
const pollEveryMs = 3_000;
/** Interval between reports of progress, milliseconds. */
const tellEveryMs = 1_000;

export interface DiskLimits {
  /** Percent of the disk that is written. */
  readonly share: number;
  /** No write begins after so long; at least one of each region does. */
  readonly writeMsMax: number;
  readonly heat: TemperatureMonitor;
}

export interface DiskTask {
  readonly target: Target;
  readonly held: HeldDevice;
  readonly limits: DiskLimits;
  readonly tell: (done: { fraction: number; errors: number; text: string }) => void;
}

/** Bytes that were moved, and how long that took. */
interface TransferTally {
  bytes: number;
  ms: number;
}

export interface DiskFindings {
  readonly wrote: TransferTally;
  readonly read: TransferTally;
  /** Wrong blocks and failed transfers. */
  errors: number;
  /** The first one; undefined: there was none. */
  first: Finding | undefined;
  loss: DeviceError['loss'];
}

export type DiskResult =
  | { readonly kind: 'worked'; readonly found: DiskFindings }
  /** Nothing was done to the disk, for that reason; `found` is empty. */
  | { readonly kind: 'notBegun'; readonly reason: string; readonly found: DiskFindings };

interface Work extends DiskTask {
  readonly context: StepContext;
  readonly found: DiskFindings;
  /** Bytes of both phases, and how many of them are done. */
  readonly totalBytes: number;
  doneBytes: number;
  reportedMs: number;
}

/** Resolves also when the disk fails or the step is cancelled: with the findings until then. */
export async function workDisk(context: StepContext, task: DiskTask): Promise<DiskResult> {
  const { target, held, limits } = task;
  const none = (): TransferTally => ({ bytes: 0, ms: 0 });
  const found: DiskFindings = {
    ...{ wrote: none(), read: none(), errors: 0, first: undefined, loss: undefined },
  };
  const sizes = target.device.regions.map(({ sizeBytes }) => spreadBytes(sizeBytes, limits.share));
  const totalBytes = 2 * sizes.reduce((sum, each) => sum + each, 0);
  const work: Work = { ...task, context, found, totalBytes, doneBytes: 0, reportedMs: 0 };
  try {
    const may = await context.requestBegin();
    if (may.kind === 'over') return { kind: 'notBegun', reason: may.reason, found };
    if (may.kind !== 'granted') return { kind: 'worked', found };
    await held.confirm();
    await workRegions(work);
    await held.confirm();
  } catch (error) {
    noteError(work, error);
  }
  return { kind: 'worked', found };
}

async function workRegions(work: Work): Promise<void> {
  const { held, target, limits, context } = work;
  const { device, identity } = target;
  for (const [index, region] of device.regions.entries()) {
    const open = held.regions[index];
    if (open === undefined) throw new DeviceError(`${region.name} is not open`);
    const seed = regionSeed(
      context.order.challengeSeed,
      identity,
      regionLabel(device, region.name),
    );
    const pattern = new Pattern(contentOf(seed), unitBytes);
    const pieces = () => splitSpans(spread(region.sizeBytes, limits.share), pieceBytesMax);
    const writeMsMax = (limits.writeMsMax * region.sizeBytes) / device.sizeBytes;
    const memory = borrowTransfers();
    try {
      const written = await write(work, open, pattern, pieces(), { memory, writeMsMax });
      await readBack(work, open, pattern, first(pieces(), written), memory);
    } finally {
      memory.giveBack();
    }
  }
}

type Memory = ReturnType<typeof borrowTransfers>;

/** Answers how many of the pieces have been written, or were refused by the disk. */
async function write(
  work: Work,
  open: OpenRegion,
  pattern: Pattern,
  pieces: Iterable<ByteSpan>,
  { memory, writeMsMax }: { readonly memory: Memory; readonly writeMsMax: number },
): Promise<number> {
  const { context, found } = work;
  const transferGate = transferGateOf(work);
  const beganMs = context.clock.suspendAwareMs();
  let count = 0;
  await inFlight(pieces, async ({ offset, length }, slot) => {
    await transferGate();
    // Pieces are taken in their order, so the taken ones are the first ones.
    count += 1;
    const bytes = memory.transfers[slot]?.subarray(0, length) ?? new Uint8Array();
    bytes.set(pattern.at(offset, length));
    try {
      await open.write(offset, bytes);
      moved(work, found.wrote, length, 'writes', beganMs);
    } catch (error) {
      noteError(work, error);
    }
    return mayGoOn(work) && context.clock.suspendAwareMs() - beganMs < writeMsMax;
  });
  if (found.loss === undefined) await open.flush();
  found.wrote.ms += context.clock.suspendAwareMs() - beganMs;
  return count;
}

async function readBack(
  work: Work,
  open: OpenRegion,
  pattern: Pattern,
  pieces: Iterable<ByteSpan>,
  memory: Memory,
): Promise<void> {
  const { context, found } = work;
  const beganMs = context.clock.suspendAwareMs();
  const take = (offset: number, read: Uint8Array | Error): boolean => {
    if (read instanceof Error) noteError(work, read);
    else {
      moved(work, found.read, read.length, 'reads', beganMs);
      noteDifference(work, pattern, offset, read);
    }
    return mayGoOn(work);
  };
  if (mayGoOn(work)) await readPieces(open, pieces, memory.transfers, take, transferGateOf(work));
  found.read.ms += context.clock.suspendAwareMs() - beganMs;
}

function noteDifference({ found }: Work, pattern: Pattern, offset: number, read: Uint8Array): void {
  const difference = pattern.differenceAt(offset, read);
  if (difference === undefined) return;
  found.errors += difference.units;
  if (found.first !== undefined) return;
  const { belongsAt, unitOffset } = difference;
  const other = belongsAt === undefined ? '' : `; it is what belongs at ${belongsAt}`;
  const text = `what was written at ${offset + unitOffset} reads back differently${other}`;
  found.first = { text };
}

function noteError({ found, context }: Work, error: unknown): void {
  if (context.signal.aborted) return;
  const { message, loss } = deviceErrorOf(error);
  found.errors += 1;
  found.loss ??= loss;
  found.first ??= { text: message };
}

function mayGoOn({ found, context, limits }: Work): boolean {
  const isEnough = found.errors >= errorsMax || found.loss !== undefined;
  return !isEnough && !context.signal.aborted && !limits.heat.isTooHot;
}

/** Before each transfer: the step still goes on, and, every few seconds, the disk is there. */
function transferGateOf({ context, held, limits }: Work): TransferGate {
  let checkedMs = context.clock.suspendAwareMs();
  return async () => {
    if (context.signal.aborted) throw new DeviceError('cancelled before it was done');
    const nowMs = context.clock.suspendAwareMs();
    if (nowMs - checkedMs < pollEveryMs) return;
    checkedMs = nowMs;
    await limits.heat.read();
    await held.checkAttached();
  };
}

function moved(
  work: Work,
  total: TransferTally,
  bytes: number,
  action: string,
  beganMs: number,
): void {
  const { target, tell, context, found, totalBytes } = work;
  total.bytes += bytes;
  work.doneBytes += bytes;
  const nowMs = context.clock.suspendAwareMs();
  if (nowMs - work.reportedMs < tellEveryMs) return;
  work.reportedMs = nowMs;
  const ms = total.ms + nowMs - beganMs;
  const text = `${target.identity}: ${action} ${speedText(total.bytes, ms)}`;
  tell({ fraction: work.doneBytes / totalBytes, errors: found.errors, text });
}

function* first<T>(items: Iterable<T>, count: number): Generator<T> {
  let left = count;
  for (const item of items) {
    if (left === 0) return;
    left -= 1;
    yield item;
  }
}
