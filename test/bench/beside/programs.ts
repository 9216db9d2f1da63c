/** Programs that are compared: they run at the same time and are asked by turns. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { type PeerOptions, peer } from '../../peers-tests/peer.ts';

/** How one is started. */
export interface Program<Name extends string> {
  readonly name: Name;
  /** Undefined when the program is not there. */
  readonly program: string | undefined;
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

export interface Running<Name extends string> {
  readonly name: Name;
  readonly pid: number;
  /** Rejects when the program ends by itself. */
  readonly ended: Promise<never>;
  stop(): Promise<void>;
}

/** Where a peer's program is, if anywhere. */
export function programOf(name: string, options?: PeerOptions): string | undefined {
  const found = peer(name, options);
  return found.kind === 'found' ? found.path : undefined;
}

/** Starts it; says so when it is not there. */
export function startProgram<Name extends string>({
  name,
  program,
  args,
  environment = {},
}: Program<Name>): Running<Name> | undefined {
  if (program === undefined) {
    console.log(`${name}: not installed, left out`);
    return undefined;
  }
  const env = { ...process.env, ...environment };
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'inherit'], env });
  const exited = once(child, 'exit');
  const ended = exited.then(([code]): never => {
    throw new Error(`${name} ended by itself, with ${String(code)}`);
  });
  ended.catch(() => undefined);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    await exited;
  };
  return { name, pid: child.pid ?? 0, ended, stop };
}
