import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodeClock, nodeDisk } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type ProcessMark, replacePredecessor } from './predecessor.ts';

let folder = '';
let strangers: ChildProcess[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-predecessor-'));
});

afterEach(() => {
  for (const { pid } of strangers.splice(0)) {
    try {
      process.kill(-(pid ?? 0), 'SIGKILL');
    } catch {
      // It was ended by the test.
    }
  }
  strangers = [];
  rmSync(folder, { recursive: true });
});

/** A leader of its own group with a child, as a runner with a tool at work. */
async function startGroup(script: string): Promise<{ pid: number; child: number }> {
  const started = spawn('sh', ['-c', script], {
    detached: true,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  strangers.push(started);
  const child = await new Promise<number>((resolve) => {
    started.stdout.once('data', (text) => resolve(Number(String(text))));
  });
  return { pid: started.pid ?? 0, child };
}

function startTicks(pid: number): string {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? '';
}

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

async function replace(mark: ProcessMark, bootId = 'boot'): Promise<number[]> {
  const path = join(folder, 'process.json');
  writeFileSync(path, JSON.stringify(mark));
  const killed: number[] = [];
  await replacePredecessor({
    disk: nodeDisk(),
    clock: nodeClock(),
    log: quietLog,
    bootId,
    path,
    procRoot: '/proc',
    ownPid: process.pid,
    kill: (target) => {
      killed.push(target);
      process.kill(target, 'SIGKILL');
    },
  });
  expect(JSON.parse(readFileSync(path, 'utf8'))).toMatchObject({ bootId, pid: process.pid });
  return killed;
}

const withChild = 'sleep 300 & echo $!; wait';

test('a runner ends a predecessor that hangs, with the tool that it had started', async () => {
  const { pid, child } = await startGroup(withChild);
  const killed = await replace({ bootId: 'boot', pid, group: pid, startTicks: startTicks(pid) });
  expect(new Set(killed)).toEqual(new Set([-pid]));
  expect([isAlive(pid), isAlive(child)]).toEqual([false, false]);
});

test('a runner ends the tool of a predecessor that is gone already', async () => {
  const { pid, child } = await startGroup('sleep 300 & echo $!; exit');
  await expect.poll(() => isAlive(pid), { interval: 10, message: 'it is gone' }).toBe(false);
  expect(isAlive(child)).toBe(true);
  await replace({ bootId: 'boot', pid, group: pid, startTicks: '1' });
  expect(isAlive(child)).toBe(false);
});

test.each([
  ['another boot', { bootId: 'other' }],
  ['a process that got its number later', { startTicks: '1' }],
])('a runner touches nothing of %s', async (_name, change) => {
  const { pid, child } = await startGroup(withChild);
  const mark = { bootId: 'boot', pid, group: pid, startTicks: startTicks(pid), ...change };
  expect(await replace(mark)).toEqual([]);
  expect([isAlive(pid), isAlive(child)]).toEqual([true, true]);
});

test('a runner ends only the predecessor itself when it shared its group with others', async () => {
  const { pid, child } = await startGroup(withChild);
  const mark = { bootId: 'boot', pid: child, group: pid, startTicks: startTicks(child) };
  expect(await replace(mark)).toEqual([child]);
  expect(isAlive(child)).toBe(false);
});
