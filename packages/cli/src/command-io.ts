/** The command's input, output and prompts: `main.ts` gives the machine's, tests their own. */

import type { Clock, Random, WebClient } from '@rackwright/platform';
import type { Channel, ConnectOptions } from '@rackwright/rpc';
import type { CommandContext } from '@stricli/core';

export interface CommandIo {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  readonly clock: Clock;
  readonly random: Pick<Random, 'fraction'>;
  /** Whole contents; undefined when the file does not exist. */
  readFile(path: string): Promise<Uint8Array | undefined>;
  /** The contents of a file that may be large, from its start. */
  readPieces?(path: string): AsyncIterable<Uint8Array>;
  /** Reaches registries; absent where nothing is to be reached. */
  readonly web?: WebClient;
  writeFile(path: string, contents: Uint8Array): Promise<void>;
  /** The same, whole or not at all, for its owner's eyes alone; makes the folder. */
  writePrivateFile(path: string, contents: Uint8Array): Promise<void>;
  /** Removes a file; one that is not there is no error. */
  removeFile(path: string): Promise<void>;
  /**
   * All of standard input; undefined when it is a terminal, where a person would not see why it
   * waits.
   */
  readInput(): Promise<string | undefined>;
  /** A line from the terminal, not shown; undefined when the person gives up. */
  askHidden(question: string): Promise<string | undefined>;
  /** A line from the terminal; undefined when nobody can be asked. */
  ask?(question: string): Promise<string | undefined>;
  /** Takes each key that is typed, unshown, until its answer is called; absent: no terminal. */
  readonly takeKeys?: ((take: (keys: string) => void) => () => void) | undefined;
  /** Instead of a connection over the network. */
  connect?(options: ConnectOptions): Channel;
  /** Standard output. */
  readonly out: Output;
  /** Standard error. */
  readonly err: Output;
  /** Aborted when the person presses Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Output {
  write(text: string): void;
  /** Width of the terminal in characters; undefined when it is none. */
  readonly columns: number | undefined;
  /** Its height in lines; undefined when it is none. */
  readonly rows?: number | undefined;
}

/** The context of every command. */
export interface CliContext extends CommandContext {
  readonly io: CommandIo;
}
