/**
 * Challenge and read-back of one device: writes recognizable blocks, and later asks the device, not
 * the tool, whether they are gone. The conclusion is drawn elsewhere (`startVerdict`).
 */
import {
  type ByteSpan,
  blockBytes,
  type ChallengePlan,
  challengeContent,
  chunkBytesMax,
  combineVerdicts,
  type DeviceFacts,
  type ErasureMethod,
  leavesContent,
  markContent,
  metadataSpans,
  planChallenge,
  planMarks,
  type Region,
  regionLabel,
  regionSeed,
  regionVerification,
  startVerdict,
  type Verdict,
  type Verification,
} from '@rackwright/erasure';
import { DeviceError, type HeldDevice, type OpenRegion } from '../machine/block-devices.ts';
import {
  inFlight,
  type ReadMemory,
  readPieces,
  splitSpans,
  type TransferGate,
} from './transfers.ts';

/** The writes and reads in one region of a device. */
export interface RegionChallenge {
  readonly region: Region;
  readonly spans: readonly ByteSpan[];
  readonly seed: Uint8Array;
  readonly plan: ChallengePlan;
  /** The places of marks that are written after the method; none where zeros are expected. */
  readonly marks: readonly number[];
}

export interface ChallengedDevice {
  readonly device: DeviceFacts;
  readonly identity: string;
  readonly verification: Verification;
}

/** Plans the challenge of a device: over all of it, or over its metadata only. */
export function planDevice(
  { device, identity, verification }: ChallengedDevice,
  method: ErasureMethod,
  operationSeed: Uint8Array,
): RegionChallenge[] {
  return device.regions.map((region) => {
    const seed = regionSeed(operationSeed, identity, regionLabel(device, region.name));
    const spans =
      method === 'metadataOnly'
        ? metadataSpans(region, device.partitions)
        : [{ offset: 0, length: region.sizeBytes }];
    const ofRegion = regionVerification(verification, region.sizeBytes, device.sizeBytes);
    const plan = planChallenge(seed, spans, ofRegion);
    const marks = leavesContent(method) ? planMarks(seed, spans, plan) : [];
    return { region, spans, seed, plan, marks };
  });
}

/**
 * Writes the challenge blocks, flushes, and reads them back: a device that does not return these
 * bytes cannot be judged later. `memory` holds all blocks, in two places. Rejects with
 * `DeviceError`.
 */
export async function writeChallenge(
  open: OpenRegion,
  { plan, seed }: RegionChallenge,
  [written = new Uint8Array(), back = new Uint8Array()]: ReadMemory,
): Promise<void> {
  const blocks = plan.challenges.map((offset, index) => {
    const at = index * blockBytes;
    const content = written.subarray(at, at + blockBytes);
    content.set(challengeContent(seed, offset));
    return { offset, content, target: back.subarray(at, at + blockBytes) };
  });
  await inFlight(blocks, async ({ offset, content }) => {
    await open.write(offset, content);
    return true;
  });
  await open.flush();
  await inFlight(blocks, async ({ offset, content, target }) => {
    await open.readInto(offset, target);
    if (Buffer.compare(target, content) === 0) return true;
    throw new DeviceError(`the block just written at offset ${offset} reads back differently`);
  });
}

/** Writes the marks and flushes. Rejects with `DeviceError`. */
export async function writeMarks(
  open: OpenRegion,
  { region, seed, marks }: RegionChallenge,
): Promise<void> {
  if (marks.length === 0) throw new DeviceError(`${region.name} is too small to be marked`);
  for (const offset of marks) await open.write(offset, markContent(seed, offset));
  await open.flush();
}

/** The reading of the planned places. */
export interface ReadBackParts {
  readonly method: ErasureMethod;
  /** The challenge was read back as written before the erasure began. */
  readonly challengeProved: boolean;
  readonly memory: ReadMemory;
  readonly transferGate: TransferGate;
  /** Called with the bytes of each completed read. */
  readonly onBytesRead: (bytes: number) => void;
  /** Called with each error of the device. */
  readonly onDeviceError: (error: DeviceError) => void;
}

/** Bytes that reading back a device takes. */
export function bytesToRead(challenges: readonly RegionChallenge[]): number {
  return challenges.reduce((sum, { plan }) => sum + bytesOfPlan(plan), 0);
}

function bytesOfPlan({ reading, bytesExamined }: ChallengePlan): number {
  return reading.level === 'full' ? bytesExamined : reading.offsets.length * blockBytes;
}

/** Reads all planned places of a device and judges them. */
export async function readVerdict(
  held: HeldDevice,
  device: DeviceFacts,
  challenges: readonly RegionChallenge[],
  reading: ReadBackParts,
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  for (const [open, challenge] of pairRegions(held, challenges)) {
    verdicts.push(await judgeRegion(open, device, challenge, reading));
  }
  return combineVerdicts(verdicts);
}

/** Every region of a held device with its plan. */
export function pairRegions(
  held: HeldDevice,
  challenges: readonly RegionChallenge[],
): [OpenRegion, RegionChallenge][] {
  return challenges.map((challenge, index) => {
    const open = held.regions[index];
    if (open === undefined) throw new DeviceError(`${challenge.region.name} is not open`);
    return [open, challenge];
  });
}

async function judgeRegion(
  open: OpenRegion,
  device: DeviceFacts,
  challenge: RegionChallenge,
  { method, challengeProved, memory, transferGate, onBytesRead, onDeviceError }: ReadBackParts,
): Promise<Verdict> {
  const deallocatedByte = device.nvme?.deallocatedByte;
  const reader = startVerdict({
    method,
    plan: challenge.plan,
    seed: challenge.seed,
    challengeProved,
    ...(deallocatedByte === undefined ? {} : { deallocatedByte }),
  });
  const take = (offset: number, read: Uint8Array | Error): boolean => {
    if (read instanceof Error) {
      const error = deviceErrorOf(read);
      onDeviceError(error);
      return reader.add({ kind: 'ioError', offset, message: error.message });
    }
    onBytesRead(read.length);
    for (let at = 0; at < read.length; at += chunkBytesMax) {
      const bytes = read.subarray(at, at + chunkBytesMax);
      if (!reader.add({ kind: 'block', offset: offset + at, bytes })) return false;
    }
    return true;
  };
  await readPieces(open, pieces(challenge.plan), memory, take, transferGate);
  const verdict = reader.finish();
  return verdict.kind === 'erased' ? ((await lostMark(open, challenge)) ?? verdict) : verdict;
}

/** Whether a mark is not there: the erasure before it may be lost as well. */
async function lostMark(
  open: OpenRegion,
  { seed, marks }: RegionChallenge,
): Promise<Verdict | undefined> {
  for (const offset of marks) {
    try {
      const bytes = await open.read(offset, blockBytes);
      if (Buffer.compare(bytes, markContent(seed, offset)) === 0) continue;
    } catch (error) {
      return { kind: 'unverified', reason: `the mark at ${offset}: ${messageOf(error)}` };
    }
    const reason = `the mark written at ${offset} after the erasure is lost, so that may be too`;
    return { kind: 'unverified', reason };
  }
  return undefined;
}

/** The places to read, in order: the sampled blocks, or the spans cut into transfers. */
function pieces({ reading }: ChallengePlan): Iterable<ByteSpan> {
  return reading.level === 'full'
    ? splitSpans(reading.spans)
    : reading.offsets.map((offset) => ({ offset, length: blockBytes }));
}

/** The words of a device's error. Anything else is a fault of ours and goes on. */
export function messageOf(error: unknown): string {
  return deviceErrorOf(error).message;
}

/** A device's error. Anything else is a fault of ours and goes on. */
export function deviceErrorOf(error: unknown): DeviceError {
  if (error instanceof DeviceError) return error;
  throw error;
}
