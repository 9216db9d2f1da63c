/**
 * Network namespaces of tests and laboratories. Nothing in them touches the machine's own network.
 *
 * 1. A name tells whose it is: `KIND-RUN-PID-NAME`. RUN names the run of the tests.
 * 2. The warden of a run removes the namespaces of the run, however the run ends.
 * 3. Outside of a run there is no warden. What a killed process left is removed by the next one
 *    that makes namespaces of the kind.
 */
import { existsSync } from 'node:fs';
import { runName } from '../run-folder.ts';
import { runProgram, until } from './processes.ts';
import type { Undo } from './undo.ts';

/** `rwlab`: laboratories; `rwdhcp`: the tests of the address server. */
export type NamespaceKind = 'rwlab' | 'rwdhcp';

const pattern = /^(?<kind>rwlab|rwdhcp)-(?<run>rwt-[A-Za-z0-9]+)-(?<pid>\d+)-/;
const endTimeoutMs = 60_000;

/** What the name of a namespace tells. */
interface Owner {
  readonly kind: string;
  readonly run: string;
  readonly pid: number;
}

/** The name for one of this process; `name` is its own among those of its kind. */
export function namespaceName(kind: NamespaceKind, name: string): string {
  return `${kind}-${runName()}-${process.pid}-${name}`;
}

/** Makes one of that name; `undo` removes it. */
export async function makeNamespace(undo: Undo, name: string): Promise<void> {
  if (!pattern.test(name)) throw new Error(`nobody would know whose namespace ${name} is`);
  undo.add(`remove ${name}`, () => removeNamespace(name));
  await runProgram('ip', ['netns', 'add', name]);
}

/** The names of those that exist and whose owner is asked for. */
export async function namespacesWhere(asked: (owner: Owner) => boolean): Promise<string[]> {
  return (await existing()).filter((name) => {
    const { kind, run, pid } = pattern.exec(name)?.groups ?? {};
    if (kind === undefined || run === undefined) return false;
    return asked({ kind, run, pid: Number(pid) });
  });
}

async function existing(): Promise<string[]> {
  const lines = (await runProgram('ip', ['netns', 'list'])).split('\n');
  return lines.map((line) => line.split(' ')[0] ?? '');
}

/** Removes those of a kind whose process has ended. */
export async function sweepNamespaces(kind: NamespaceKind): Promise<void> {
  const left = await namespacesWhere((owner) => {
    return owner.kind === kind && !existsSync(`/proc/${owner.pid}`);
  });
  for (const name of left) await removeNamespace(name);
}

/** With what still runs in it: dhclient goes its own way once it has a lease. */
export async function removeNamespace(name: string): Promise<void> {
  if (!(await existing()).includes(name)) return;
  await until(`the end of the processes in ${name}`, endTimeoutMs, async () => {
    const left = (await runProgram('ip', ['netns', 'pids', name])).split('\n').filter(Boolean);
    for (const pid of left.map(Number)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
    return left.length === 0;
  });
  await runProgram('ip', ['netns', 'delete', name]);
}
