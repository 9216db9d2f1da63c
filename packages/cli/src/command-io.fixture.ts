/** An input and output in memory for this package's tests. */
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { runCli } from './app.ts';
import type { CommandIo } from './command-io.ts';

export interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

export interface GivenWorld {
  readonly files?: Record<string, Uint8Array | string>;
  /** Standard input; without it that is a terminal. */
  readonly input?: string;
  /** Lines typed on the terminal without being shown; then the person gives up. */
  readonly typed?: readonly string[];
  /** Answers to questions; after the last one nobody can be asked. */
  readonly answers?: readonly string[];
  /** Receives the questions that were asked. */
  readonly questions?: string[];
  readonly environment?: Record<string, string>;
  readonly columns?: number;
  readonly connect?: CommandIo['connect'];
  readonly web?: CommandIo['web'];
  readonly clock?: CommandIo['clock'];
  /** Takes the modes of private files. */
  readonly modes?: Record<string, number>;
  /** What the next readings of a file give, before it is read as it is. */
  readonly readFirst?: Readonly<Record<string, (Uint8Array | string | undefined)[]>>;
  /** Aborted when the person presses Ctrl-C. */
  readonly signal?: AbortSignal;
}

/** Runs a command line over these files. */
export async function runOver(args: readonly string[], given: GivenWorld = {}): Promise<Ran> {
  const { io, written } = ioOver(given);
  const code = await runCli(args, io);
  return { code, ...written };
}

/** One over these files, and its output. */
export function ioOver(given: GivenWorld = {}): {
  readonly io: CommandIo;
  readonly written: { out: string; err: string };
} {
  const written = { out: '', err: '' };
  const { files = {} } = given;
  const typed = [...(given.typed ?? [])];
  const answers = [...(given.answers ?? [])];
  const io: CommandIo = {
    environment: given.environment ?? {},
    homeFolder: '/home/me',
    clock: given.clock ?? nodeClock(),
    random: nodeRandom(),
    readFile: async (path) => {
      const first = given.readFirst?.[path] ?? [];
      const contents = first.length > 0 ? first.shift() : files[path];
      return typeof contents === 'string' ? new TextEncoder().encode(contents) : contents;
    },
    readPieces: async function* (path) {
      const contents = files[path];
      if (contents === undefined) throw new Error('no such file');
      yield typeof contents === 'string' ? new TextEncoder().encode(contents) : contents;
    },
    ...(given.web === undefined ? {} : { web: given.web }),
    writeFile: async (path, contents) => {
      files[path] = contents;
    },
    writePrivateFile: async (path, contents) => {
      files[path] = contents;
      if (given.modes !== undefined) given.modes[path] = 0o600;
    },
    removeFile: async (path) => {
      delete files[path];
    },
    readInput: async () => given.input,
    askHidden: async (question) => {
      given.questions?.push(question);
      return typed.shift();
    },
    ask: async (question) => {
      given.questions?.push(question);
      return answers.shift();
    },
    ...(given.connect === undefined ? {} : { connect: given.connect }),
    out: {
      write: (text) => {
        written.out += text;
      },
      columns: given.columns,
    },
    err: {
      write: (text) => {
        written.err += text;
      },
      columns: given.columns,
    },
    signal: given.signal ?? new AbortController().signal,
  };
  return { io, written };
}
