/**
 * Folders that commands take for "/". `linux/command-roots.ts` has the real ones.
 */
import type { OperationId } from '@rackwright/messages';
import type { ProgramRequest } from '../program/program.ts';

/** Bounds of everything that one image unpacks to. */
export interface UnpackLimits {
  readonly entriesMax: number;
  readonly bytesMax: number;
}

export const defaultUnpackLimits: UnpackLimits = {
  entriesMax: 200_000,
  bytesMax: 4 * 1024 * 1024 * 1024,
};

export interface CommandRoots {
  /** A fresh one; the remains of earlier ones are removed first. */
  make(limits: UnpackLimits): Promise<CommandRoot>;
}

/** One command's. */
export interface CommandRoot {
  /**
   * Unpacks an archive over the present content. Rejects with `OciError` for an unsupported entry.
   */
  apply(archive: AsyncIterable<Uint8Array>): Promise<void>;
  /** Devices and pipes that were left out: how many, and the first few names. */
  readonly leftOut: { readonly count: number; readonly names: readonly string[] };
  /** The request that starts a program in it, with /dev, /proc and /sys of this machine. */
  enter(program: EnteredProgram): Promise<ProgramRequest>;
  /** Removes all of it. */
  remove(): Promise<void>;
}

export interface EnteredProgram {
  readonly operationId: OperationId;
  /** The program and its arguments; it is looked for in PATH of `environment`. */
  readonly commandLine: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  /** The same for variables that no list of arguments may show. */
  readonly secrets: Readonly<Record<string, string>>;
  /** Absolute; made when it is missing. */
  readonly folder: string;
}
