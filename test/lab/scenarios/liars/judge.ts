/**
 * What became of a disk that lies: by its file, read from outside, beside what the control plane
 * says of it.
 *
 * 1. The file decides what is left. What Rackwright says decides only whether it has promised
 *    something else, and whether it has named the disk.
 */
import { shareFound } from '@rackwright/erasure';
import { inspectDisk, isUntouched, PATTERN_BLOCK_BYTES } from '../../disk-image.ts';
import type { LabDisk } from '../../qemu-disks.ts';
import type { LiarDisk } from './cases.ts';

/** A certificate's statement, as far as it is judged here. */
export interface StatementView {
  readonly device: { readonly name: string; readonly serial: string; readonly sizeBytes: number };
  readonly verdict: {
    readonly kind: string;
    /** Of an erased device: whether it was read whole, or at how many places. */
    readonly level?: 'full' | 'sampled';
    readonly placesRead?: number;
  };
}

/** What Rackwright says of a host and its disks. */
export interface Claims {
  readonly isAvailable: boolean;
  /** Certificates that hold: neither revoked nor of a run that failed. */
  readonly statements: readonly StatementView[];
  /** All its words about what is wrong with the host. */
  readonly words: string;
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
  /** The words that name the disk, or what its certificate says. */
  readonly caughtBy: string;
}

/** Judges one disk. The machine must be off. */
export function judgeDisk(disk: LabDisk & LiarDisk, claims: Claims): Judgement {
  if (disk.isSpare === true) {
    const isForeignWhole = isUntouched(disk.image, disk.patternName);
    return {
      ending: isForeignWhole ? 'untouched' : 'foreignWritten',
      leftBytes: 0,
      caughtBy: '',
    };
  }
  const start = disk.bytes - (disk.patternMebibytes ?? disk.mebibytes) * 1024 * 1024;
  const { withPattern } = inspectDisk(disk.image, disk.patternName, start);
  const leftBytes = withPattern * PATTERN_BLOCK_BYTES;
  const handle = disk.handle ?? new RegExp(escapeWords(disk.serial));
  const statement = claims.statements.find(
    ({ device, verdict }) =>
      verdict.kind === 'erased' && (handle.test(device.serial) || handle.test(device.name)),
  );
  const naming = namingWords(claims.words, handle);
  return {
    ending: endingOf({ claims, leftBytes, statement, naming }),
    leftBytes,
    caughtBy: naming,
  };
}

function endingOf(found: {
  readonly claims: Claims;
  readonly leftBytes: number;
  readonly statement: StatementView | undefined;
  readonly naming: string;
}): Ending {
  const { claims, leftBytes, statement, naming } = found;
  if (leftBytes > 0 && (claims.isAvailable || statement !== undefined)) {
    return statement !== undefined && allows(statement, leftBytes) ? 'stated' : 'gotThrough';
  }
  if (claims.isAvailable) return statement === undefined ? 'notCertified' : 'erased';
  if (naming !== '') return 'refused';
  return leftBytes === 0 ? 'erasedBesideOthers' : 'notNamed';
}

/** A sample is worth so much: it may miss a share that it would find less surely. */
const CONFIDENCE = 0.99;

/** Whether a statement leaves room for so much to be left. */
function allows({ device, verdict }: StatementView, leftBytes: number): boolean {
  if (verdict.level !== 'sampled' || verdict.placesRead === undefined) return false;
  return leftBytes / device.sizeBytes < shareFound(verdict.placesRead, CONFIDENCE);
}

/** The sentence or line that names a disk. */
function namingWords(words: string, handle: RegExp): string {
  return (
    words
      .split(/\n|; /)
      .find((part) => handle.test(part))
      ?.trim() ?? ''
  );
}

function escapeWords(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');
}
