/** The runner as a process of its own, on disks that are files. */
import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { inject } from 'vitest';
import type { TestAgent } from './session/test-agent.ts';

/** The boot token that the test's agent takes. */
export const bootToken = 't0ken';

export interface RunnerProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<{ readonly signal: string | null; readonly code: number | null }>;
}

/** Bundled as for a release: to load the sources takes three times as long. */
export function runnerProgram(): string {
  return join(inject('programs'), 'runner.mjs');
}

/**
 * Starts it in a process group of its own, as the ramdisk's init does. `folder` holds the disks,
 * the file `dmi` and the runner's own files; `kernelArgs` go to the kernel's command line.
 */
export function startRunner(
  folder: string,
  testAgent: TestAgent,
  kernelArgs: string,
): RunnerProcess {
  const { port, fingerprint } = testAgent;
  const line = `rackwright.agent=127.0.0.1:${port} rackwright.fingerprint=${fingerprint}`;
  const args = [
    runnerProgram(),
    ...['--cmdline', `${line} rackwright.token=${bootToken} ${kernelArgs}`],
    ...['--file-disks', folder, '--dmi', join(folder, 'dmi')],
    ...['--state-dir', join(folder, 'state')],
  ];
  const child = spawn(process.execPath, args, { detached: true, stdio: 'ignore' });
  const ended = new Promise<{ signal: string | null; code: number | null }>((resolve) => {
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  return { child, ended };
}
