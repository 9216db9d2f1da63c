/**
 * Challenge and read-back of one device: writes what can be recognized again, and later asks the
 * device, not the tool, whether it is gone. What the reading proves is decided elsewhere
 * (`startVerdict`).
 */
import {
  blockBytes,
  type ChallengePlan,
  challengeContent,
  chunkBytesMax,
  combineVerdicts,
  type DeviceFacts,
  type ErasureMethod,
  metadataSpans,
  planChallenge,
  type Region,
  regionLabel,
  regionSeed,
  regionVerification,
  type Span,
  startVerdict,
  type Verdict,
  type Verification,
} from '@rackwright/erasure';
import {
  DeviceError,
  type HeldDevice,
  type OpenRegion,
  transferBytesMax,
} from '../block-devices.ts';

/** What is written and read in one region of a device. */
export interface RegionChallenge {
  readonly region: Region;
  readonly spans: readonly Span[];
  readonly seed: Uint8Array;
  readonly plan: ChallengePlan;
}

interface ChallengedDevice {
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
    return { region, spans, seed, plan: planChallenge(seed, spans, ofRegion) };
  });
}

/**
 * Writes the challenge blocks, flushes, and reads them back: a device that does not return what it
 * was just given cannot be judged later. Rejects with `DeviceError`.
 */
export async function writeChallenge(open: OpenRegion, challenge: RegionChallenge): Promise<void> {
  const blocks = challenge.plan.challenges.map((offset) => {
    return { offset, content: challengeContent(challenge.seed, offset) };
  });
  for (const { offset, content } of blocks) await open.write(offset, content);
  await open.flush();
  for (const { offset, content } of blocks) {
    if (!equal(await open.read(offset, blockBytes), content)) {
      throw new DeviceError(`the block just written at offset ${offset} reads back differently`);
    }
  }
}

/** Reads all planned places of a device and judges them. */
export async function readVerdict(
  held: HeldDevice,
  device: DeviceFacts,
  challenges: readonly RegionChallenge[],
  method: ErasureMethod,
  challengeProved: boolean,
): Promise<Verdict> {
  const verdicts: Verdict[] = [];
  for (const [open, challenge] of pairRegions(held, challenges)) {
    verdicts.push(await judgeRegion(open, device, challenge, method, challengeProved));
  }
  return combineVerdicts(verdicts);
}

/** Every region of a held device with what is planned for it. */
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
  method: ErasureMethod,
  challengeProved: boolean,
): Promise<Verdict> {
  const deallocatedByte = device.nvme?.deallocatedByte;
  const reader = startVerdict({
    method,
    plan: challenge.plan,
    seed: challenge.seed,
    challengeProved,
    ...(deallocatedByte === undefined ? {} : { deallocatedByte }),
  });
  for (const { offset, length } of pieces(challenge.plan)) {
    if (!reader.add(await readPiece(open, offset, length))) break;
  }
  return reader.finish();
}

/** What is read, in order: the sampled blocks, or the spans cut into pieces. */
function* pieces({ reading }: ChallengePlan): Generator<Span> {
  if (reading.level === 'sampled') {
    for (const offset of reading.offsets) yield { offset, length: blockBytes };
    return;
  }
  const most = Math.min(chunkBytesMax, transferBytesMax);
  for (const span of reading.spans) {
    for (let at = 0; at < span.length; at += most) {
      yield { offset: span.offset + at, length: Math.min(most, span.length - at) };
    }
  }
}

async function readPiece(open: OpenRegion, offset: number, length: number) {
  try {
    return { kind: 'block' as const, offset, bytes: await open.read(offset, length) };
  } catch (error) {
    return { kind: 'ioError' as const, offset, message: wordsOf(error) };
  }
}

/** The words of a device's error. Anything else is a fault of ours and goes on. */
export function wordsOf(error: unknown): string {
  return deviceErrorOf(error).message;
}

/** A device's error. Anything else is a fault of ours and goes on. */
export function deviceErrorOf(error: unknown): DeviceError {
  if (error instanceof DeviceError) return error;
  throw error;
}

function equal(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
