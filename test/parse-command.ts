/** Whether the command line takes a command, for tests of texts that tell people commands. */
import { type CommandIo, runCli } from '@rackwright/cli';
import { nodeClock } from '@rackwright/platform/node';

/** What stands for a value, where the command would refuse the word itself. */
const values: readonly (readonly [RegExp, string])[] = [
  [/^N\/SECONDS$/, '1/60'],
  [/^(N|SECONDS)$/, '1'],
  [/^(ADDRESS:PORT|ADDRESS:8443)$/, '10.0.0.1:8443'],
  [/^ADDRESS$/, '10.0.0.1'],
  [/^MAC$/, '52:54:00:00:00:01'],
  [/^STEP$/, 'management.clear_event_log'],
  [/^ROLE$/, 'viewer'],
  [/^min-size=SIZE$/, 'min-size=480GB'],
];

export interface ParsedCommand {
  /** `exitCodes.usage`: the command line refuses these words. */
  readonly code: number;
  /** What the command wrote to standard error. */
  readonly err: string;
}

/** Runs a command as far as the connection that it would make; without `rackwright`. */
export async function parseCommand(commandArgs: readonly string[]): Promise<ParsedCommand> {
  let err = '';
  const files = ['FILE', 'token', 'ca'];
  const io: CommandIo = {
    environment: {
      RACKWRIGHT_SERVER: 'rackwright.example.org:7443',
      RACKWRIGHT_TOKEN_FILE: 'token',
      RACKWRIGHT_CA_FILE: 'ca',
    },
    homeFolder: '/nowhere',
    clock: nodeClock(),
    random: { fraction: () => 0 },
    readFile: async (path) => (files.includes(path) ? new TextEncoder().encode('x') : undefined),
    writeFile: async () => {},
    writePrivateFile: async () => undefined,
    removeFile: async () => undefined,
    readInput: async () => 'password',
    askHidden: async () => 'password',
    ask: async () => 'yes',
    connect: () => {
      throw new Error('would have connected');
    },
    out: { write: () => {}, columns: undefined },
    err: {
      write: (text) => {
        err += text;
      },
      columns: undefined,
    },
    signal: new AbortController().signal,
  };
  const args = commandArgs.map((word) => values.find(([shape]) => shape.test(word))?.[1] ?? word);
  return { code: await runCli(args, io), err };
}
