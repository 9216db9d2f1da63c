/**
 * The one folder of a demo, and its removal at every end of the demo.
 *
 * L1 Everything that the demo writes is in this folder, and every process that it starts runs a
 *    program out of it: this property alone identifies the demo's processes.
 * L2 A guard cleans up after a demo that is killed; if the guard is killed too, the next demo does.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const prefix = 'rackwright-demo-';
/** A folder without an owner's name is one that is just being made, unless it is older. */
const unnamedAgeMs = 60_000;
const goneAttemptsMax = 50;
const goneWaitMs = 20;

/** The place of a demo's programs in its folder. */
export function programPath(folder: string, name: string): string {
  return join(folder, 'programs', `${name}.mjs`);
}

/** A new folder that says whose it is. Throws with what to do when none can be made. */
export function makeFolder(): string {
  const folder = makeTemporary();
  const owner = { pid: process.pid, startedAt: startOf(process.pid) };
  writeFileSync(join(folder, 'owner.json'), JSON.stringify(owner));
  return folder;
}

/** Ends the processes of a demo and removes its folder. Resolves when both are gone. */
export async function removeFolder(folder: string): Promise<void> {
  for (let attempt = 0; attempt < goneAttemptsMax; attempt += 1) {
    const left = processesOf(folder).filter((pid) => pid !== process.pid);
    if (left.length === 0) break;
    for (const pid of left) kill(pid);
    await sleep(goneWaitMs);
  }
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}

/** Removes what demos left behind that are no more. Answers how many there were. */
export async function removeStaleFolders(): Promise<number> {
  const parent = tmpdir();
  const found = listed(parent).filter((name) => name.startsWith(prefix));
  let removed = 0;
  for (const folder of found.map((name) => join(parent, name))) {
    if (!isOurs(folder) || isOwned(folder)) continue;
    await removeFolder(folder);
    removed += 1;
  }
  return removed;
}

function makeTemporary(): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix));
  } catch (cause) {
    const text = `nothing can be written to ${tmpdir()}: set TMPDIR to a folder of yours`;
    throw new Error(text, { cause });
  }
}

/** The names in a folder; none in one that cannot be read. */
function listed(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

/** Pids of processes that run a program of this folder (L1). */
export function processesOf(folder: string): number[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.map(Number).filter((pid) => programOf(pid).startsWith(join(folder, 'programs/')));
}

/** The file that a process runs: of Node the word after Node itself. */
function programOf(pid: number): string {
  const [executable = '', program = ''] = readText(`/proc/${pid}/cmdline`)?.split('\0') ?? [];
  return /(^|\/)node$/.test(executable) ? program : executable;
}

/** When a process began, in ticks since the machine's start: a pid may be reused, this may not. */
function startOf(pid: number): string | undefined {
  // The program's name, in brackets, may hold spaces; the start is the 20th word after it.
  return readText(`/proc/${pid}/stat`)
    ?.replace(/^.*\) /s, '')
    .split(' ')[19];
}

function isOwned(folder: string): boolean {
  const text = readText(join(folder, 'owner.json'));
  if (text === undefined || text === '') {
    return Date.now() - statSync(folder).mtimeMs < unnamedAgeMs;
  }
  const { pid, startedAt } = JSON.parse(text) as { pid: number; startedAt: string };
  return startOf(pid) === startedAt;
}

function isOurs(folder: string): boolean {
  const stat = statSync(folder, { throwIfNoEntry: false });
  return stat?.isDirectory() === true && stat.uid === process.getuid?.();
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended by itself.
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return undefined;
  }
}
