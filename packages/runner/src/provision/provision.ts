/**
 * Puts an image onto a disk.
 *
 * I1 Everything about the image that can be checked before the first write is checked before: its
 *    format, its size where it is known, its first megabyte with the partition table, the
 *    first-boot data.
 * I2 The first and the last megabyte of the disk, where the tables are, are zeros from the first
 *    write on. They are written last, after three checks: the whole file has arrived with the
 *    digest that names it; all else was read back past the page cache and equals the received
 *    content; the content is what was declared. The reading back goes on while later content is
 *    still being written (`checked-writes.ts`). Of these megabytes the first block is written last,
 *    in a write of its own: it is there or not. So no firmware and no kernel takes a half-written
 *    disk for bootable, after a kill, a cancellation or an error. A failure after the first of
 *    these writes zeroes both again.
 * I3 Old signatures at both ends are gone before anything else is written.
 * I4 Success is what was read back.
 * I5 The zeros at both ends are checked again before anything is written over them. A disk that
 *    reports more than its real size has content there by then, which the tables would destroy.
 */
import {
  type BootableFirmware,
  type ByteFilter,
  type ByteSource,
  type Content,
  checkBootable,
  checkDigest,
  efiSystemPartition,
  type FittedPartition,
  type FittedTable,
  fitTable,
  ImageError,
  type ImageFault,
  makeSeed,
  type ReadingLimits,
  type Seed,
  seedName,
  seedPartitionBytes,
} from '@rackwright/disk-image';
import type { Hashes } from '@rackwright/platform';
import { DeviceError, transferBytesMax } from '../machine/block-devices.ts';
import type { BeginOutcome } from '../session/permission.ts';
import {
  DiskWriter,
  headBytes,
  type ImageDisk,
  type WrittenContent,
  writeAndCompare,
} from './disk-writer.ts';
import { type ImageFile, type PreparedImage, prepareImage } from './prepared-image.ts';

export interface ProvisionPlan {
  readonly image: ImageFile;
  /** The last partition is made to end with the disk; its file system is left to the first boot. */
  readonly grow: boolean;
  readonly seed?: Seed;
  /** The firmware that has to boot the image; absent: that is not judged. */
  readonly firmware?: BootableFirmware;
}

export interface ProvisionParts {
  readonly unxz: ByteFilter;
  readonly hashes: Hashes;
  readonly limits?: ReadingLimits;
  /** Asked right before the first write (R11). */
  requestBegin(): Promise<BeginOutcome>;
  /**
   * Before the first write, after each transfer, and before the writes that make the disk count.
   */
  reached?(point: 'begun' | 'writing' | 'readBack'): void;
}

/** A run of zeros is taken in such pieces, so that progress can be reported. */
const zerosBytesMax = 16 * 1024 * 1024;

/** Called with the done share, 0 to 1, and the present activity. */
export type ProvisionProgress = (fraction: number, action: string) => void;

export type ProvisionResult =
  | { readonly kind: 'complete'; readonly installed: InstalledDisk }
  | {
      readonly kind: 'failed';
      readonly fault: ImageFault | 'ioError' | 'cancelled' | 'notPermitted';
      readonly message: string;
      /** The disk has been written to: its old content is lost. */
      readonly begun: boolean;
    };

/** The disk's content, as it was read back. */
export interface InstalledDisk {
  readonly sizeBytes: number;
  readonly contentSha256: string;
  readonly table: FittedTable['kind'];
  readonly partitions: readonly FittedPartition[];
  readonly grown?: FittedTable['grown'];
  /** Why no partition grew. */
  readonly notGrown?: string;
  readonly seed?: FittedPartition;
  /** The partition that UEFI boots from: for a boot entry. */
  readonly efiSystem?: FittedPartition;
}

/** The share of each part of the work. */
const shares = { checked: 0.1, written: 0.5, readBack: 0.38 } as const;

interface Work {
  readonly plan: ProvisionPlan;
  readonly disk: ImageDisk;
  readonly progress: ProvisionProgress;
  readonly signal: AbortSignal;
  readonly parts: ProvisionParts;
  begun: boolean;
}

/** Always returns; a refusal of the image or the disk becomes the text of the end. */
export async function provisionDisk(
  plan: ProvisionPlan,
  source: ByteSource,
  disk: ImageDisk,
  progress: ProvisionProgress,
  signal: AbortSignal,
  parts: ProvisionParts,
): Promise<ProvisionResult> {
  const work: Work = { plan, disk, progress, signal, parts, begun: false };
  let image: PreparedImage | undefined;
  try {
    const checking = (part: number): void => progress(shares.checked * part, 'checking the image');
    const { unxz, hashes, limits } = parts;
    image = await prepareImage(plan.image, source, { signal, unxz, hashes, limits, checking });
    return { kind: 'complete', installed: await install(work, image) };
  } catch (error) {
    return failure(work, error);
  } finally {
    // An error of the close changes no result: the work is complete, or has failed before.
    await image?.close().catch(() => undefined);
  }
}

/** Until the last phase, which writes the tables, no firmware boots the disk (I2). */
async function install(work: Work, image: PreparedImage): Promise<InstalledDisk> {
  const { plan, disk, signal } = work;
  const sizeBytes = image.sizeBytes ?? plan.image.contentSizeBytes;
  checkFits(sizeBytes, disk);
  const seed = plan.seed === undefined ? undefined : makeSeed(plan.seed, disk.blockBytes);
  const { fitted, written } = await writeAllButTables(work, image, sizeBytes);
  checkContent(plan.image, written);
  // Before the end is written over (I5).
  await checkZeros(disk, endOf(disk), disk.sizeBytes);
  throwIfCancelled(signal);
  await counting(disk, () => writeTables(work, fitted, written, seed));
  work.progress(1, 'done');
  return installed(written, fitted);
}

interface Installation {
  readonly fitted: FittedTable;
  readonly written: WrittenContent;
}

/** Nothing is under way on the disk when it ends, however it does. */
async function writeAllButTables(
  work: Work,
  image: PreparedImage,
  sizeBytes: number | undefined,
): Promise<Installation> {
  const { plan, disk, signal, parts } = work;
  const content = noLonger(image.content, plan.image.contentSizeBytes);
  const done: ContentProgress = { written: 0, readBack: 0, hasEnded: false };
  const report = (bytes: number): void => {
    done.readBack += bytes;
    tellDone(work, done, sizeBytes);
  };
  const writer = new DiskWriter(disk, sizeBytes, parts.hashes, signal, report);
  try {
    const { fitted, rest } = await readHeadAndFit(work, writer, content);
    await begin(work);
    const written = await writeBody(work, writer, joined(rest, content), done, sizeBytes);
    return { fitted, written };
  } finally {
    await writer.waitUntilSettled();
  }
}

/** The last check before the first write (I1); `rest`: content beyond the head. */
async function readHeadAndFit(
  work: Work,
  writer: DiskWriter,
  content: AsyncGenerator<Content, void, undefined>,
): Promise<{ readonly fitted: FittedTable; readonly rest: Content | undefined }> {
  const rest = await takeHead(writer, content);
  if (writer.sizeBytes === 0) throw new ImageError('truncated', 'the image is empty');
  return { fitted: fit(work, writer.head), rest };
}

/** The writes that make the disk count: the head comes last of all (I2). */
async function writeTables(
  { disk, signal, parts }: Work,
  fitted: FittedTable,
  { tail }: WrittenContent,
  seed: Uint8Array | undefined,
): Promise<void> {
  for (const { offset, bytes } of tail) await writeAndCompare(disk, offset, bytes);
  if (seed !== undefined && fitted.seed !== undefined) {
    await writeAndCompare(disk, fitted.seed.offsetBytes, seed);
  }
  for (const { offset, bytes } of fitted.writes) await writeAndCompare(disk, offset, bytes);
  throwIfCancelled(signal);
  parts.reached?.('readBack');
  // Before the head is written over (I5).
  await checkZeros(disk, 0, headBytes);
  await writeHead(disk, fitted.head);
}

function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new DeviceError('cancelled before it was done');
}

/** The first write (R11, I3). */
async function begin(work: Work): Promise<void> {
  const { disk, signal, parts } = work;
  const may = await parts.requestBegin();
  if (may.kind === 'over') throw new NotPermitted(may.reason);
  if (signal.aborted) throw new DeviceError('cancelled before it was begun');
  work.begun = true;
  parts.reached?.('begun');
  await wipeEnds(disk);
}

function checkFits(sizeBytes: number | undefined, disk: ImageDisk): void {
  if (disk.sizeBytes < 2 * headBytes) {
    throw new ImageError('tooLarge', `the disk has only ${disk.sizeBytes} bytes`);
  }
  if (sizeBytes === undefined || sizeBytes <= disk.sizeBytes) return;
  const sizes = `${sizeBytes} bytes, the disk ${disk.sizeBytes}`;
  throw new ImageError('tooLarge', `the image is larger than the disk: it has ${sizes}`);
}

/** Reads the part that is written last; returns content beyond it that came with it. */
async function takeHead(
  writer: DiskWriter,
  content: AsyncGenerator<Content, void, undefined>,
): Promise<Content | undefined> {
  while (!writer.headIsFull) {
    const next = await content.next();
    if (next.done === true) return undefined;
    const rest = writer.fillHead(next.value);
    if (rest !== undefined) return rest;
  }
  return undefined;
}

function fit({ plan, disk }: Work, head: Uint8Array): FittedTable {
  const { sizeBytes: diskBytes, blockBytes } = disk;
  const seed =
    plan.seed === undefined
      ? {}
      : { seed: { sizeBytes: seedPartitionBytes, name: seedName(plan.seed) } };
  const fitted = fitTable({ head, diskBytes, blockBytes, grow: plan.grow, ...seed });
  if (plan.firmware !== undefined) checkBootable(fitted, plan.firmware);
  return fitted;
}

/** Tables, boot loaders and the superblocks of RAID and LVM live at both ends of a disk (I3). */
async function wipeEnds(disk: ImageDisk): Promise<void> {
  const { open, sizeBytes } = disk;
  await open.writeZeros(0, headBytes);
  await open.writeZeros(endOf(disk), headBytes);
  await open.flush();
  await checkZeros(disk, 0, headBytes);
  await checkZeros(disk, endOf(disk), sizeBytes);
}

/** The offset of the last bytes, which are zeroed before anything else is written. */
function endOf({ sizeBytes }: ImageDisk): number {
  return sizeBytes - headBytes;
}

/** Zeros from before that are still there (I5); at most `headBytes`. */
async function checkZeros({ open }: ImageDisk, from: number, to: number): Promise<void> {
  if (to <= from) return;
  const found = await open.read(from, to - from);
  if (Buffer.compare(found, new Uint8Array(to - from)) === 0) return;
  const problem = `zeros written at ${from} are not read back`;
  throw new ImageError('notReadBack', problem);
}

/** An image that holds more than it says is given up at that byte, not at the end of the disk. */
async function* noLonger(
  content: AsyncIterable<Content>,
  declared = Number.POSITIVE_INFINITY,
): AsyncGenerator<Content, void, undefined> {
  let sizeBytes = 0;
  for await (const piece of content) {
    sizeBytes += piece.kind === 'bytes' ? piece.bytes.length : piece.length;
    if (sizeBytes > declared) throw tooLong(declared);
    yield piece;
  }
}

function tooLong(declared: number | undefined): ImageError {
  const sizes = `more than the declared ${declared} bytes`;
  return new ImageError('tooLong', `the content of the image has ${sizes}`);
}

async function* joined(
  first: Content | undefined,
  content: AsyncIterable<Content>,
): AsyncGenerator<Content, void, undefined> {
  if (first !== undefined) yield* inPieces(first);
  for await (const piece of content) yield* inPieces(piece);
}

function* inPieces(content: Content): Generator<Content, void, undefined> {
  if (content.kind === 'bytes') return yield content;
  for (let left = content.length; left > 0; left -= zerosBytesMax) {
    yield { kind: 'zeros', length: Math.min(left, zerosBytesMax) };
  }
}

/** Bytes of the content. */
interface ContentProgress {
  written: number;
  readBack: number;
  /** All of it has arrived. */
  hasEnded: boolean;
}

async function writeBody(
  work: Work,
  writer: DiskWriter,
  content: AsyncIterable<Content>,
  done: ContentProgress,
  sizeBytes: number | undefined,
): Promise<WrittenContent> {
  for await (const piece of content) {
    const before = Math.floor(writer.sizeBytes / transferBytesMax);
    await writer.add(piece);
    if (Math.floor(writer.sizeBytes / transferBytesMax) > before) work.parts.reached?.('writing');
    done.written = writer.sizeBytes;
    tellDone(work, done, sizeBytes);
  }
  done.hasEnded = true;
  return await writer.finish();
}

function tellDone(
  { disk, progress }: Work,
  { written, readBack, hasEnded }: ContentProgress,
  sizeBytes = disk.sizeBytes,
): void {
  const allBytes = hasEnded ? written : sizeBytes;
  const share = (bytes: number): number => Math.min(1, bytes / allBytes);
  const { checked, written: ofWritten, readBack: ofRead } = shares;
  const part = checked + ofWritten * share(written) + ofRead * share(readBack);
  progress(part, hasEnded ? 'reading back' : 'writing');
}

function checkContent(image: ImageFile, { sizeBytes, sha256 }: WrittenContent): void {
  const declared = image.contentSizeBytes;
  if (declared !== undefined && sizeBytes < declared) {
    const sizes = `${sizeBytes} bytes, not the declared ${declared}`;
    throw new ImageError('truncated', `the content of the image has ${sizes}`);
  }
  if (image.contentSha256 !== undefined) checkDigest(sha256, image.contentSha256);
}

/** The writes that make the disk count. A disk that does not return them must not count (I2). */
async function counting(disk: ImageDisk, act: () => Promise<void>): Promise<void> {
  try {
    await act();
  } catch (error) {
    const { open } = disk;
    for (const at of [0, endOf(disk)]) {
      await open.writeZeros(at, headBytes).catch(ofDevice);
    }
    await open.flush().catch(ofDevice);
    throw error;
  }
}

/** The disk may be gone: the first failure is reported. */
function ofDevice(error: unknown): void {
  if (!(error instanceof DeviceError)) throw error;
}

/** A power cut may tear a write of many blocks: the first one is written alone, at the end. */
async function writeHead(disk: ImageDisk, head: Uint8Array): Promise<void> {
  const { blockBytes } = disk;
  await writeAndCompare(disk, blockBytes, head.subarray(blockBytes));
  await writeAndCompare(disk, 0, head.subarray(0, blockBytes));
}

function installed(written: WrittenContent, fitted: FittedTable): InstalledDisk {
  const efiSystem = efiSystemPartition(fitted);
  const { kind: table, partitions, grown, notGrown, seed } = fitted;
  return {
    sizeBytes: written.sizeBytes,
    contentSha256: written.sha256,
    table,
    partitions,
    ...(grown === undefined ? {} : { grown }),
    ...(notGrown === undefined ? {} : { notGrown }),
    ...(seed === undefined ? {} : { seed }),
    ...(efiSystem === undefined ? {} : { efiSystem }),
  };
}

/** The agent does not let it begin. */
class NotPermitted extends Error {}

/** Anything but the words of image, device and permission is a fault of ours and goes on. */
function failure({ begun, signal }: Work, error: unknown): ProvisionResult {
  if (signal.aborted) {
    const message = `cancelled ${begun ? 'before it was done' : 'before the first write'}`;
    return { kind: 'failed', fault: 'cancelled', message, begun };
  }
  if (error instanceof ImageError) {
    return { kind: 'failed', fault: error.fault, message: error.message, begun };
  }
  if (error instanceof DeviceError) {
    return { kind: 'failed', fault: 'ioError', message: error.message, begun };
  }
  if (error instanceof NotPermitted) {
    return { kind: 'failed', fault: 'notPermitted', message: `not begun: ${error.message}`, begun };
  }
  throw error;
}
