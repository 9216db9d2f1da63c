/**
 * The runner as a process on file disks, killed at each of its named points. The disks' own log and
 * content decide; the runner's reports are compared with them.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { decideScope, methodToWire, storageDeviceOf } from '@rackwright/erasure';
import { BmcIdentitySchema, type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { nodeClock } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fileDisks } from './linux/file-disks.ts';
import { bootToken, type RunnerProcess, runnerProgram, startRunner } from './process.fixture.ts';
import { startTestAgent, type TestAgent } from './session/test-agent.ts';

const guid = '00112233445566778899aabbccddeeff';
const mib = 1024 * 1024;
const seed = new Uint8Array(32).fill(9);
let folder = '';
let testAgent: TestAgent;
let child: ChildProcess | undefined;

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-main-'));
  writeFileSync(join(folder, 'dmi'), JSON.stringify({ uuid: guid, bootId: 'boot-1' }));
  const description = { serial: 'S-sda', discardSupported: false };
  writeFileSync(join(folder, 'sda.json'), JSON.stringify(description));
  writeFileSync(join(folder, 'sda.img'), Buffer.alloc(4 * mib, 'PATTERN!'));
  testAgent = await startTestAgent(bootToken);
});

afterEach(async () => {
  child?.kill('SIGKILL');
  await testAgent.close();
  rmSync(folder, { recursive: true });
});

function start(kernelArgs = ''): RunnerProcess['ended'] {
  const started = startRunner(folder, testAgent, kernelArgs);
  child = started.child;
  return started.ended;
}

async function order(operationId: OperationId, mode: agent.StepMode = agent.StepMode.RUN) {
  const { devices } = await fileDisks(folder, nodeClock()).list();
  const value = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    mode,
    challengeSeed: seed,
    expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid, 'hex') }),
    devices: decideScope(devices).flatMap((decision) =>
      decision.kind === 'inScope'
        ? [{ device: storageDeviceOf(decision.device), method: methodToWire(decision.method) }]
        : [],
    ),
  });
  const message = { operationId, kind: { case: 'runStep' as const, value } };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, message) });
}

function finalOf(operationId: OperationId) {
  return testAgent.until(({ results }) => {
    const mine = results.filter((each) => each.operationId === operationId);
    return mine.map(({ result }) => result).find(({ kind }) => kind !== 'continuing');
  });
}

/** What the disk saw, in short: the kinds of the acts that were done to it, folded. */
function seen(): string[] {
  let text = '';
  try {
    text = readFileSync(join(folder, 'sda.log'), 'utf8');
  } catch {
    return [];
  }
  const lines: { phase: string; kind: string }[] = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line));
  const kinds = lines.filter(({ phase }) => phase === 'end').map(({ kind }) => kind);
  return kinds.filter((kind, at) => kind !== 'open' && kind !== kinds[at - 1]);
}

const isBlank = (): boolean => readFileSync(join(folder, 'sda.img')).every((byte) => byte === 0);

const stages = (stage: string): string =>
  JSON.stringify({ seed: Buffer.from(seed).toString('hex'), devices: { 'S-sda': stage } });

/** Point → what the disk has seen by then, and what the successor says of it. */
test.each<[string, string[], string | undefined]>([
  ['runner.received', [], undefined],
  ['runner.begun', [], undefined],
  ['runner.challenged', ['write', 'flush'], stages('challenged')],
  ['runner.erased', ['write', 'flush', 'zero', 'flush'], stages('erased')],
  ['runner.verified', ['write', 'flush', 'zero', 'flush'], stages('verified')],
])(
  'killed at %s, its successor reports interrupted and repeats nothing',
  async (point, acts, last) => {
    const killed = start(`rackwright.lab.crash=${point}`);
    await order('a');
    expect(await killed).toEqual({ code: null, signal: 'SIGKILL' });
    expect(seen()).toEqual(acts);

    void start(`rackwright.lab.crash=${point}`);
    const result = await finalOf('a');
    expect(result).toMatchObject({ kind: 'failed', type: 'interrupted' });
    expect(result).toEqual(
      last === undefined ? expect.anything() : expect.objectContaining({ lastProgress: last }),
    );
    expect(testAgent.heard.hellos.at(-1)).toMatchObject({
      interruptedOperationId: 'a',
      unreceivedOperationIds: ['a'],
    });
    expect(seen()).toEqual(acts);

    const value = create(runner.ReportReceivedSchema, { operationId: 'a' });
    await testAgent.send({ case: 'reportReceived', value });
    await order('b');
    expect(await finalOf('b')).toEqual({ kind: 'complete' });
    expect(isBlank()).toBe(true);
  },
);

test('killed before the challenge of a sparse disk, no check can prove an erasure', async () => {
  const sparse = Buffer.alloc(64 * mib);
  sparse.write('SECRET', 5 * mib);
  writeFileSync(join(folder, 'sda.img'), sparse);
  const killed = start('rackwright.lab.crash=runner.begun');
  await order('a');
  await killed;
  void start();
  expect(await finalOf('a')).toMatchObject({ type: 'interrupted' });
  const value = create(runner.ReportReceivedSchema, { operationId: 'a' });
  await testAgent.send({ case: 'reportReceived', value });
  await order('b', agent.StepMode.CHECK);
  expect(await finalOf('b')).toMatchObject({ kind: 'failed', type: 'unverified' });
  expect(seen()).toEqual([]);
});

test('killed at runner.reported, its successor gives the same report again', async () => {
  const killed = start('rackwright.lab.crash=runner.reported');
  await order('a');
  expect(await killed).toMatchObject({ signal: 'SIGKILL' });
  const acts = readFileSync(join(folder, 'sda.log'), 'utf8');
  void start();
  await testAgent.until(({ hellos }) => hellos[1]);
  expect(await finalOf('a')).toEqual({ kind: 'complete' });
  expect(readFileSync(join(folder, 'sda.log'), 'utf8')).toBe(acts);
});

test('with the verdict switched off a lying disk passes, and nothing is claimed', async () => {
  const faults = [{ kind: 'lying', operation: 'discard' }];
  writeFileSync(join(folder, 'sda.json'), JSON.stringify({ serial: 'S-sda', faults }));
  void start('rackwright.lab.verdict=off');
  await order('a');
  expect(await finalOf('a')).toEqual({ kind: 'complete' });
  expect(isBlank()).toBe(false);
  const [evidence] = testAgent.heard.evidence;
  expect(evidence?.devices[0]?.verdict).toBe(agent.VerdictKind.SWITCHED_OFF);
});

test('the runner says on one line what is wrong with its arguments', async () => {
  const started = spawn(process.execPath, [runnerProgram(), '--dmi', '/m']);
  child = started;
  let said = '';
  started.stderr.on('data', (text) => {
    said += String(text);
  });
  const code = await new Promise((resolve) => {
    started.once('close', resolve);
  });
  expect(code).toBe(64);
  expect(said).toContain('--file-disks and --dmi go together');
});
