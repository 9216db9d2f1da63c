/**
 * The test runner itself, stopped by each signal while one of its tests is busy: nothing that this
 * run made is left in the machine, and nothing of anybody else is touched.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeNamespace, namespaceName } from './lab/namespaces.ts';
import { until } from './lab/processes.ts';
import { createUndo, type Undo } from './lab/undo.ts';
import { LoopDisks, noLoops } from './loop-disks.ts';
import { type Made, stillThere } from './stopped-run/made.ts';

const root = join(import.meta.dirname, '..');
const waitMs = 120_000;

let folder = '';
let undo: Undo;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-stopped-'));
  undo = createUndo();
  undo.add('remove the folder', () => rmSync(folder, { recursive: true }));
});

afterEach(async () => {
  const failures = await undo.run();
  if (failures.length > 0) throw new Error(failures.join('; '));
});

/** Starts the runner on a test that makes everything. `made` has come when the test is busy. */
async function startRun(...command: string[]): Promise<{ child: ChildProcess; made: Made }> {
  const path = join(folder, 'made.json');
  const { RACKWRIGHT_TEST_FOLDER: _ours, VITEST: _vitest, ...environment } = process.env;
  const config = join(root, 'test/stopped-run/vitest.config.ts');
  const child = spawn(process.execPath, [...command, '--config', config], {
    cwd: root,
    env: { ...environment, RACKWRIGHT_MADE: path },
    stdio: 'ignore',
  });
  undo.add('end the run', () => void child.kill('SIGKILL'));
  await until('the run to make everything', waitMs, () => existsSync(path));
  return { child, made: JSON.parse(readFileSync(path, 'utf8')) as Made };
}

/** What is not of that run: a process, a namespace and a loop device of ours. */
async function makeOurs(): Promise<Made> {
  const ours: Made = {
    folders: [folder],
    mounts: [],
    loops: [],
    namespaces: [],
    groups: [],
    processes: [process.pid],
  };
  if (process.getuid?.() !== 0) return ours;
  const namespace = namespaceName('rwdhcp', 'spared');
  await makeNamespace(undo, namespace);
  ours.namespaces.push(namespace);
  if (noLoops(folder) !== undefined) return ours;
  const loops = new LoopDisks(folder);
  undo.add('detach', () => loops.remove());
  ours.loops.push(loops.add(1024 * 1024).path);
  return ours;
}

const vitest = [join(root, 'node_modules/vitest/vitest.mjs'), 'run'];
const npmTest = [join(import.meta.dirname, 'bootstrap.mjs'), 'test'];

test.each([
  ['SIGINT', 'vitest', vitest],
  ['SIGTERM', 'vitest', vitest],
  ['SIGKILL', 'vitest', vitest],
  ['SIGTERM', 'npm test', npmTest],
  ['SIGKILL', 'npm test', npmTest],
] as const)('%s to %s takes back what its tests made', async (signal, _name, command) => {
  const ours = await makeOurs();
  const { child, made } = await startRun(...command);
  const whole = stillThere(made);
  expect(whole).toHaveLength(Object.values(made).flat().length);
  const end = once(child, 'exit');
  child.kill(signal);
  await end;
  await expect.poll(() => stillThere(made), { timeout: waitMs, interval: 50 }).toEqual([]);
  expect(stillThere(ours)).toHaveLength(Object.values(ours).flat().length);
});
