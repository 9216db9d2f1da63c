/**
 * What became of a disk that lies: by its file, read from outside, beside what the control plane
 * says of it.
 *
 * 1. The file decides what is left. What Rackwright says decides only whether it has promised
 *    something else, and whether it has named the disk.
 * 2. A lie that the disk never told was not tried, however well everything ended.
 */
import type { ErasureStatement } from '@rackwright/erasure';
import { inspectDisk, isUntouched, PATTERN_BLOCK_BYTES } from '../../disk-image.ts';
import type { LabDisk } from '../../qemu-disks.ts';
import { isLying, type LiarDisk } from './cases.ts';

const MIB = 1024 * 1024;
/** Shares on certificates are in millionths of a percent. */
const PPCM = 1e8;

/** What Rackwright says of a host and its disks. */
export interface Claims {
  readonly isAvailable: boolean;
  /** Certificates that promise something: neither revoked nor of a step that failed. */
  readonly statements: readonly ErasureStatement[];
  /** All its words about what is wrong with the host. */
  readonly text: string;
}

/** How a case ended. */
export type Ending =
  /** Nothing is left, and the certificate says so. */
  | 'erased'
  /** Something is left where the certificate says that nobody looked. */
  | 'stated'
  /** The host is not available, and the disk is named. */
  | 'refused'
  /** The machine's other disks keep it from being available; this one was erased. */
  | 'erasedBesideOthers'
  /** A spare as it was. */
  | 'untouched'
  | 'notTried'
  | 'gotThrough'
  | 'notNamed'
  | 'notCertified'
  | 'foreignWritten';

const good: ReadonlySet<Ending> = new Set([
  'erased',
  'stated',
  'refused',
  'erasedBesideOthers',
  'untouched',
]);

/** Whether the case ended as it must. */
export function isGood(ending: Ending): boolean {
  return good.has(ending);
}

/** How a disk's case ended, with what was found. */
export interface Judgement {
  readonly ending: Ending;
  readonly leftBytes: number;
  /** What the disk did to the one that trusted it. */
  readonly tried: string;
  /** The words that name the disk, or what its certificate says. */
  readonly caughtBy: string;
}

/** Judges one disk, which has lied so often. The machine must be off. */
export function judgeDisk(disk: LabDisk & LiarDisk, lies: number, claims: Claims): Judgement {
  if (disk.isSpare === true) {
    const isForeignWhole = isUntouched(disk.image, disk.patternName);
    return {
      ending: isForeignWhole ? 'untouched' : 'foreignWritten',
      leftBytes: 0,
      tried: 'plugged in',
      caughtBy: isForeignWhole ? 'never written' : '',
    };
  }
  const handle = disk.handle ?? new RegExp(escapePattern(disk.serial));
  const statement = claims.statements.find(
    ({ device }) => handle.test(device.serial) || handle.test(device.name),
  );
  const admitted = Math.min(statement?.device.sizeBytes ?? disk.bytes, disk.bytes);
  const left = {
    inside: leftIn(disk, patternStart(disk), admitted),
    hidden: leftIn(disk, admitted, disk.bytes),
  };
  const naming = namingText(claims.text, handle);
  const ending = endingOf({ claims, left, statement, naming });
  const leftBytes = left.inside + left.hidden;
  return {
    ending: isLying(disk) && lies === 0 ? 'notTried' : ending,
    leftBytes,
    tried: isLying(disk) ? `lied ${lies} times` : `${disk.bytes - leftBytes} bytes are erased`,
    caughtBy: naming === '' && statement !== undefined ? promiseOf(statement) : naming,
  };
}

function patternStart({ bytes, mebibytes, patternMebibytes }: LabDisk): number {
  return bytes - (patternMebibytes ?? mebibytes) * MIB;
}

/** Bytes of the disk's pattern between two offsets. */
function leftIn({ image, patternName }: LabDisk, from: number, to: number): number {
  return inspectDisk(image, patternName, { from, to }).withPattern * PATTERN_BLOCK_BYTES;
}

/** What is left: of what the certificate speaks of, and behind it. */
interface Left {
  readonly inside: number;
  readonly hidden: number;
}

function endingOf(found: {
  readonly claims: Claims;
  readonly left: Left;
  readonly statement: ErasureStatement | undefined;
  readonly naming: string;
}): Ending {
  const { claims, left, statement, naming } = found;
  const leftBytes = left.inside + left.hidden;
  if (leftBytes > 0 && (claims.isAvailable || statement !== undefined)) {
    return statement !== undefined && allows(statement, left) ? 'stated' : 'gotThrough';
  }
  if (claims.isAvailable) return statement === undefined ? 'notCertified' : 'erased';
  if (naming !== '') return 'refused';
  return leftBytes === 0 ? 'erasedBesideOthers' : 'notNamed';
}

/** Whether a statement leaves room for so much to be left, and says so. */
function allows({ device, verification, capacity }: ErasureStatement, left: Left): boolean {
  const found = (verification.findsSharePpcm ?? 0) / PPCM;
  const isSampled = verification.level === 'sampled' && left.inside / device.sizeBytes < found;
  return (left.inside === 0 || isSampled) && (left.hidden === 0 || capacity.kind === 'notExamined');
}

/** The limits of what a statement promises. */
function promiseOf({ verification, capacity, powerCycle }: ErasureStatement): string {
  const { level, places, findsSharePpcm } = verification;
  const share = `finds ${((findsSharePpcm ?? 0) / PPCM) * 100} %`;
  const read = level === 'sampled' ? `${places} places, ${share}` : 'read whole';
  const behind = capacity.kind === 'notExamined' ? `; capacity: ${capacity.reason}` : '';
  return `${read}${behind}; ${powerCycle}`;
}

/** The sentence or line that names a disk. */
function namingText(text: string, handle: RegExp): string {
  return (
    text
      .split(/\n|; /)
      .find((part) => handle.test(part))
      ?.trim() ?? ''
  );
}

function escapePattern(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
