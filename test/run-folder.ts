/**
 * One temporary folder for all that a run of the tests makes, and a warden that outlives the run:
 * however it ends, also by SIGKILL, the warden ends what still runs on the folder and removes it.
 */
import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync } from 'node:fs';
import { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const marker = 'RACKWRIGHT_TEST_FOLDER';
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
}
