/**
 * What a run of the tests has left in the machine, found by the run's folder or name, and its end:
 * processes, mounts, loop devices, namespaces, control groups, folders.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, realpathSync, rmdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorText } from '@rackwright/platform';
import { endProcesses, type FoundProcess, processesWith } from './e2e/leftovers.ts';
import { namespacesWhere, removeNamespace } from './lab/namespaces.ts';
import { marker, scratchOf } from './run-folder.ts';

/** How long what ends by itself may take: workers of the runner, for one. */
const graceMs = 1_000;
/** The same for wardens of runs within this one. */
const wardenGraceMs = 60_000;
const lookMs = 50;

/** Takes all of it back, and answers what a person should know of it. */
export async function takeBack(folder: string): Promise<readonly string[]> {
  const told: string[] = [];
  const attempt = async (what: string, act: () => Promise<void> | void): Promise<void> => {
    try {
      await act();
    } catch (error) {
      told.push(`${what}: ${errorText(error)}`);
    }
  };
  await attempt('processes of the tests', async () => {
    const count = await endRun(folder);
    if (count > 0) told.push(`ended what the tests had left: ${count} processes`);
  });
  for (const path of groupsOf(folder)) {
    await attempt(`control group ${path}`, () => removeGroup(path));
  }
  for (const path of mountsBelow(folder)) {
    await attempt(`mount ${path}`, () => void execFileSync('umount', [path]));
  }
  for (const path of loopsOf(folder)) {
    await attempt(`loop device ${path}`, () => void execFileSync('losetup', ['--detach', path]));
  }
  await attempt('network namespaces', async () => {
    if (existsSync('/run/netns')) await removeNamespaces(folder);
  });
  await attempt('folders', () => {
    const mounted = mountsBelow(folder);
    // Removing the folder would empty what is mounted there.
    if (mounted.length > 0) throw new Error(`${mounted.join(', ')} is mounted: ${folder} stays`);
    for (const each of [folder, scratchOf(basename(folder))]) {
      rmSync(each, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
    }
  });
  return told;
}

/** All processes of the run but this one. */
export function processesOfRun(folder: string): FoundProcess[] {
  const assignment = `${marker}=${folder}`;
  // A run within this one has a folder in ours.
  const isOurs = (each: string) => each === assignment || each.startsWith(`${assignment}/`);
  const grouped = new Set(groupsOf(folder).flatMap(membersOf));
  return processesWith(({ pid, commandLine, environment }) => {
    return commandLine.includes(folder) || environment().some(isOurs) || grouped.has(pid);
  });
}

/** Ends what does not end by itself, and answers how many that were. */
async function endRun(folder: string): Promise<number> {
  const isWarden = ({ commandLine }: FoundProcess) => commandLine.includes('warden.main.ts');
  const tests = () => processesOfRun(folder).filter((each) => !isWarden(each));
  await ended(tests, graceMs);
  const count = tests().length;
  await endProcesses(tests);
  const wardens = () => processesOfRun(folder);
  await ended(wardens, wardenGraceMs);
  await endProcesses(wardens);
  return count;
}

/** Waits until there are none, for so long at most. */
async function ended(find: () => readonly FoundProcess[], withinMs: number): Promise<void> {
  const untilMs = performance.now() + withinMs;
  while (find().length > 0 && performance.now() < untilMs) await sleep(lookMs);
}

async function removeNamespaces(folder: string): Promise<void> {
  const names = await namespacesWhere(({ run }) => run === basename(folder));
  for (const name of names) await removeNamespace(name);
}

/** Mount points in the folder, each before the one that it is in. */
function mountsBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const place = `${realpathSync(folder)}/`;
  const points = readFileSync('/proc/self/mountinfo', 'utf8').split('\n').map(mountPoint);
  return points.filter((path) => path.startsWith(place)).reverse();
}

/** The fifth field of a line, where blanks are written as octal numbers (proc(5)). */
function mountPoint(line: string): string {
  const [, , , , path = ''] = line.split(' ');
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) =>
    String.fromCharCode(Number.parseInt(digits, 8)),
  );
}

/** Loop devices that show a file in the folder. */
function loopsOf(folder: string): string[] {
  if (!existsSync(folder)) return [];
  const place = `${realpathSync(folder)}/`;
  const names = readdirSync('/sys/block').filter((name) => name.startsWith('loop'));
  return names
    .filter((name) => textOf(join('/sys/block', name, 'loop/backing_file')).startsWith(place))
    .map((name) => join('/dev', name));
}

/** Control groups beside ours that have the run's name in their own. */
function groupsOf(folder: string): string[] {
  const mounted = /^\S+ (\S+) cgroup2 /m.exec(textOf('/proc/mounts'))?.[1];
  const own = /^0::(.*)$/m.exec(textOf('/proc/self/cgroup'))?.[1];
  if (mounted === undefined || own === undefined) return [];
  const place = join(mounted, own);
  const names = readdirSync(place).filter((name) => name.includes(`-${basename(folder)}-`));
  return names.map((name) => join(place, name));
}

function membersOf(group: string): number[] {
  return textOf(join(group, 'cgroup.procs')).split('\n').filter(Boolean).map(Number);
}

/** The kernel lets go of it some time after its last process has ended. */
async function removeGroup(path: string): Promise<void> {
  const untilMs = performance.now() + graceMs;
  for (let isLate = false; existsSync(path); isLate = performance.now() > untilMs) {
    try {
      rmdirSync(path);
    } catch (error) {
      if (isLate) throw error;
      await sleep(lookMs);
    }
  }
}

/** Empty if it is not there. */
function textOf(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}
