/**
 * Scripts in the runner as a process, killed in the middle and around a hand-off. A script is
 * judged by its own written files; the runner's reports are compared with them.
 */
import type { ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bootToken, type RunnerProcess, startRunner } from './process.fixture.ts';
import { startTestAgent, type TestAgent } from './session/test-agent.ts';

let folder = '';
let testAgent: TestAgent;
let child: ChildProcess | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-scripts-'));
  writeFileSync(join(folder, 'dmi'), JSON.stringify({ bootId: 'boot-1' }));
  testAgent = await startTestAgent(bootToken);
});

afterEach(async () => {
  child?.kill('SIGKILL');
  await testAgent.close();
  rmSync(folder, { recursive: true, maxRetries: 20, retryDelay: 50 });
});

function start(kernelArgs = ''): RunnerProcess['ended'] {
  const started = startRunner(folder, testAgent, kernelArgs);
  child = started.child;
  return started.ended;
}

async function order(operationId: OperationId, script: string, handOff = false): Promise<void> {
  const value = create(agent.RunStepSchema, {
    step: 'run.script',
    mode: agent.StepMode.RUN,
    destructive: false,
    arguments: { script },
    ...(handOff ? { handOff } : {}),
  });
  const message = { operationId, kind: { case: 'runStep' as const, value } };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, message) });
}

async function received(operationId: OperationId, handOff = false): Promise<void> {
  const value = create(runner.ReportReceivedSchema, { operationId, handOff });
  await testAgent.send({ case: 'reportReceived', value });
}

function finalOf(operationId: OperationId) {
  return testAgent.until(({ results }) => {
    const mine = results.filter((each) => each.operationId === operationId);
    return mine.map(({ result }) => result).find(({ kind }) => kind !== 'continuing');
  });
}

const hello = (count: number) => testAgent.until(({ hellos }) => hellos[count - 1]);

/** Lines that scripts wrote into a file of the test. */
function marks(): string[] {
  const path = join(folder, 'marks');
  return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n') : [];
}

async function untilMarks(count: number): Promise<void> {
  await testAgent.until(() => (marks().length >= count ? true : undefined));
}

function isAlive(pid: number): boolean {
  try {
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

const mark = (text: string): string => `echo ${text} >>${folder}/marks`;

test('the runner runs a script, tells its output while it comes, and how it ended', async () => {
  void start();
  await order('u/1/2/1', 'echo one; sleep 1; echo two; exit 5');
  const first = await testAgent.until(({ logs }) => logs[0]);
  expect(Buffer.from(first.content).toString()).toBe('one\n');
  expect(testAgent.heard.results.filter(({ result }) => result.kind === 'failed')).toEqual([]);
  expect(await finalOf('u/1/2/1')).toMatchObject({
    type: 'exitCode',
    message: 'exit code 5: two',
    output: { exit: { code: 5, outputBytes: 8n } },
  });
  const [, second] = testAgent.heard.logs;
  expect([second?.offset, Buffer.from(second?.content ?? []).toString()]).toEqual([4n, 'two\n']);
});

test('after a kill in the middle of a script it does not go on, and is not repeated', async () => {
  const killed = start();
  const own = `echo $$ >>${folder}/marks`;
  const script = `(setsid sh -c '${own}; sleep 300') & ${own}; wait`;
  await order('u/1/2/1', script);
  await untilMarks(2);
  const pids = marks().map(Number);
  expect(pids.map(isAlive)).toEqual([true, true]);
  child?.kill('SIGKILL');
  expect(await killed).toEqual({ code: null, signal: 'SIGKILL' });

  void start();
  expect(await finalOf('u/1/2/1')).toMatchObject({ kind: 'failed', type: 'interrupted' });
  expect(pids.map(isAlive)).toEqual([false, false]);
  expect(marks()).toHaveLength(2);
  await received('u/1/2/1');
  await order('u/1/2/2', mark('again'));
  expect(await finalOf('u/1/2/2')).toMatchObject({ kind: 'complete' });
});

test('a script that is killed at its start is interrupted, and does not run again', async () => {
  const killed = start('rackwright.lab.crash=runner.programStarted');
  await order('u/1/2/1', `${mark('begun')}; sleep 300`);
  expect(await killed).toEqual({ code: null, signal: 'SIGKILL' });
  void start();
  expect(await finalOf('u/1/2/1')).toMatchObject({ type: 'interrupted' });
  expect(marks().filter((line) => line === 'begun').length).toBeLessThanOrEqual(1);
});

test('a hand-off acts after it is acknowledged, and once', async () => {
  void start();
  await order('u/1/2/1', mark('acted'), true);
  expect(await finalOf('u/1/2/1')).toEqual({ kind: 'complete' });
  expect(marks()).toEqual([]);
  await received('u/1/2/1', true);
  await untilMarks(1);
  await received('u/1/2/1', true);
  await order('u/1/2/1', mark('acted'), true);
  await testAgent.until(({ results }) =>
    results.find(({ result }) => result.kind === 'retryAfter'),
  );
  expect(marks()).toEqual(['acted']);
});

test('a hand-off that is not applied never acts', async () => {
  void start();
  await order('u/1/2/1', mark('acted'), true);
  await finalOf('u/1/2/1');
  await received('u/1/2/1');
  await order('u/1/3/1', mark('next'));
  expect(await finalOf('u/1/3/1')).toMatchObject({ kind: 'complete' });
  expect(marks()).toEqual(['next']);
});

test('a hand-off whose script cannot run is refused before anything is acknowledged', async () => {
  void start();
  await order('u/1/2/1', '', true);
  expect(await finalOf('u/1/2/1')).toMatchObject({ type: 'invalidArgument' });
});

/** Crash point → what the successor says of it, and whether it acts once it may. */
test.each<[string, string, string[]]>([
  ['runner.received', 'interrupted', []],
  ['runner.reported', 'complete', ['acted']],
])('a hand-off that is killed at %s acts at most once', async (point, end, acted) => {
  const killed = start(`rackwright.lab.crash=${point}`);
  await order('u/1/2/1', mark('acted'), true);
  expect(await killed).toEqual({ code: null, signal: 'SIGKILL' });
  void start();
  await hello(2);
  const result = await finalOf('u/1/2/1');
  expect(result.kind === 'failed' && 'type' in result ? result.type : result.kind).toBe(end);
  await received('u/1/2/1', end === 'complete');
  if (acted.length > 0) await untilMarks(1);
  await order('u/1/3/1', mark('next'));
  await testAgent.until(({ results }) =>
    results.find(({ operationId }) => operationId === 'u/1/3/1'),
  );
  expect(marks().filter((line) => line === 'acted')).toEqual(acted);
});

test('a hand-off that is killed while it acts never acts again', async () => {
  const killed = start('rackwright.lab.crash=runner.handingOff');
  await order('u/1/2/1', mark('acted'), true);
  await finalOf('u/1/2/1');
  await received('u/1/2/1', true);
  expect(await killed).toEqual({ code: null, signal: 'SIGKILL' });
  void start();
  expect(await hello(2)).toMatchObject({ unreceivedOperationIds: [] });
  await received('u/1/2/1', true);
  await order('u/1/2/1', mark('acted'), true);
  await testAgent.until(({ results }) =>
    results.find(({ result }) => result.kind === 'retryAfter'),
  );
  expect(marks()).toEqual([]);
});
