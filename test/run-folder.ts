/**
 * One temporary folder for all that a run of the tests makes, and a warden that outlives the run:
 * however the run ends, also by SIGKILL, the warden takes back what the run made in the machine.
 *
 * 1. What a test makes outside of the folder (a namespace, a control group, a folder in the clone)
 *    has {@link runName} in its name. Mounts and loop devices stand on the folder.
 * 2. What belongs to another run, or to the user, is not touched.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** Names the folder, in the environment of all processes of a run. */
export const marker = 'RACKWRIGHT_TEST_FOLDER';
const clone = join(import.meta.dirname, '..');
/** How often a run looks whether its starter is there. */
const starterLookMs = 500;
/** As /tmp is: tests start programs as other users. */
const forEverybody = 0o1777;

/**
 * Makes the folder and starts its warden; `tmpdir()` leads into it from now on, here and in every
 * process that inherits the environment. Does nothing in a process of such a run.
 */
export function openRunFolder(): void {
  if (process.env[marker] !== undefined) return;
  // Short: sockets lie in it, and their paths may have 107 characters.
  const folder = mkdtempSync(join(tmpdir(), 'rwt-'));
  chmodSync(folder, forEverybody);
  process.env[marker] = folder;
  process.env['TMPDIR'] = folder;
  const program = fileURLToPath(new URL('warden.main.ts', import.meta.url));
  const warden = spawn(process.execPath, [program, folder], {
    // Out of reach of Ctrl-C.
    detached: true,
    // Nobody else holds the other end: it closes when this process ends.
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  warden.unref();
  if (warden.stdin instanceof Socket) warden.stdin.unref();
  endWithStarter();
}

/** `npm test` cannot hand on SIGKILL: a run whose starter has gone stops itself. */
function endWithStarter(): void {
  const starter = Number(process.env['RACKWRIGHT_STARTER'] ?? 0);
  if (process.ppid !== starter) return;
  setInterval(() => {
    if (process.ppid !== starter) process.kill(process.pid, 'SIGTERM');
  }, starterLookMs).unref();
}

/** The name of the run that this process is of, and of its folder; `rwt-none` outside of a run. */
export function runName(): string {
  return basename(process.env[marker] ?? 'rwt-none');
}

/** Where a run has the folders that must stand in the clone. */
export function scratchOf(run: string): string {
  return join(clone, '.cache', run);
}

/** A new folder in the clone, for what has to find `node_modules`. */
export function folderInClone(prefix: string): string {
  const scratch = scratchOf(runName());
  mkdirSync(scratch, { recursive: true });
  return mkdtempSync(join(scratch, prefix));
}
