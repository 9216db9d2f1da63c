/** The rackwright command as tests type it. */
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import { type CommandIo, runCli } from '@rackwright/cli';
import { nodeClock, nodeRandom, nodeUserFiles, nodeWebClient } from '@rackwright/platform/node';
import { compileCache, type ProgramName, programOf } from './programs.ts';

/** What a command printed, and its exit code. */
export interface Said {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

type Environment = Readonly<Record<string, string>>;

/** In this process: to start a program costs more than most commands. `given` replaces its own. */
export async function typed(
  environment: Environment,
  args: readonly string[],
  input = '',
  given: Partial<Pick<CommandIo, 'ask' | 'writeFile' | 'signal' | 'out'>> = {},
): Promise<Said> {
  const said = { out: '', err: '' };
  const output = (to: 'out' | 'err') => ({
    write: (more: string) => void (said[to] += more),
    columns: undefined,
  });
  const code = await runCli(args, {
    ...nodeUserFiles(),
    environment,
    homeFolder: tmpdir(),
    clock: nodeClock(),
    random: nodeRandom(),
    web: nodeWebClient(),
    readInput: async () => input,
    askHidden: async () => undefined,
    out: output('out'),
    err: output('err'),
    signal: new AbortController().signal,
    ...given,
  });
  return { code, ...said };
}

/** As people start it: a process of its own. */
export async function started(
  name: ProgramName,
  environment: Environment,
  args: readonly string[],
  input = '',
): Promise<Said> {
  const child = spawn(process.execPath, [programOf(name), ...args], {
    env: { ...compileCache(), ...environment },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  child.stdin.end(input);
  const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { code: await ended, out, err };
}
