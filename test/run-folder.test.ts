/** A run of the tests that is killed leaves neither processes nor files. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { processesOf } from './e2e/leftovers.ts';

/** Opens a folder, starts a program on it, says where it is, and waits to be killed. */
const run = `
  import { spawn } from 'node:child_process';
  import { writeFileSync } from 'node:fs';
  import { tmpdir } from 'node:os';
  import { openRunFolder } from ${JSON.stringify(join(import.meta.dirname, 'run-folder.ts'))};
  openRunFolder();
  writeFileSync(tmpdir() + '/file', 'left');
  const idle = 'setInterval(() => {}, 1_000)';
  spawn(process.execPath, ['-e', idle, tmpdir()], { detached: true, stdio: 'ignore' });
  console.log(tmpdir());
  setInterval(() => {}, 1_000);
`;

/** The folder and the processes on it, as far as they are there. */
function left(folder: string): string[] {
  const folders = existsSync(folder) ? [folder] : [];
  return [...folders, ...processesOf(folder).map(({ commandLine }) => commandLine)];
}

test.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)(
  'a run that ends by %s leaves neither folder nor process',
  async (signal) => {
    const { RACKWRIGHT_TEST_FOLDER: _ours, ...env } = process.env;
    const args = ['--input-type=module', '-e', run];
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'ignore'] });
    const [said] = (await once(child.stdout, 'data')) as [Buffer];
    const folder = said.toString().trim();
    expect(processesOf(folder), 'its program and its warden').toHaveLength(2);
    child.kill(signal);
    await expect.poll(() => left(folder), { interval: 20 }).toEqual([]);
  },
);
