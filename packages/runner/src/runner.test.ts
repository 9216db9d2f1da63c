import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { create } from '@bufbuild/protobuf';
import { decideScope, methodToWire, storageDeviceOf } from '@rackwright/erasure';
import { BmcIdentitySchema, type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { nodeClock, nodeDisk, nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { eraseDevices, eraseDevicesMetadata } from './erase/step.ts';
import { fileDisks } from './linux/file-disks.ts';
import { fileMachine } from './linux/file-machine.ts';
import { type RunnerParts, runRunner } from './runner.ts';
import { grpcDialer } from './session/dialer.ts';
import { startTestAgent, type TestAgent } from './session/test-agent.ts';
import type { Step } from './steps/step.ts';

const clock = nodeClock();
const guid = '00112233445566778899aabbccddeeff';
const mib = 1024 * 1024;
let folder = '';
let testAgent: TestAgent;
const runners: { over: AbortController; ended: Promise<void> }[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-runner-'));
  writeFileSync(
    join(folder, 'dmi'),
    JSON.stringify({ uuid: guid, bootId: 'boot-1', interfaces: [{ name: 'e0', mac: 'm' }] }),
  );
  testAgent = await startTestAgent('t0ken');
});

afterEach(async () => {
  for (const { over, ended } of runners.splice(0)) {
    over.abort();
    await ended;
  }
  await testAgent.close();
  rmSync(folder, { recursive: true });
});

function addDisk(name: string, description: object = {}): void {
  writeFileSync(
    join(folder, `${name}.json`),
    JSON.stringify({ serial: `S-${name}`, ...description }),
  );
  writeFileSync(join(folder, `${name}.img`), Buffer.alloc(2 * mib, 'PATTERN!'));
}

function startRunner(change: Partial<RunnerParts> = {}): void {
  const { port, fingerprint } = testAgent;
  const over = new AbortController();
  const ended = runRunner(
    {
      dialer: grpcDialer({ host: '127.0.0.1', port, fingerprint }, clock),
      devices: fileDisks(folder, clock),
      machine: fileMachine(join(folder, 'dmi'), clock),
      steps: [eraseDevices, eraseDevicesMetadata],
      clock,
      random: nodeRandom(),
      disk: nodeDisk(),
      log: quietLog,
      crashPoint: () => {},
      stateFolder: join(folder, 'state'),
      bootToken: 't0ken',
      runnerVersion: '0.1.0',
      verdictSwitchedOff: false,
      ...change,
    },
    over.signal,
  );
  runners.push({ over, ended });
}

async function eraseOrder(operationId: OperationId): Promise<runner.SessionResponse['message']> {
  const { devices } = await fileDisks(folder, clock).list();
  const value = create(agent.RunStepSchema, {
    step: 'deploy.erase_devices',
    mode: agent.StepMode.RUN,
    challengeSeed: new Uint8Array(32).fill(9),
    expectedIdentity: create(BmcIdentitySchema, { guid: Buffer.from(guid, 'hex') }),
    devices: decideScope(devices).flatMap((decision) =>
      decision.kind === 'inScope'
        ? [{ device: storageDeviceOf(decision.device), method: methodToWire(decision.method) }]
        : [],
    ),
  });
  const order = create(runner.OrderSchema, { operationId, kind: { case: 'runStep', value } });
  return { case: 'order', value: order };
}

function finalOf(operationId: OperationId): Promise<{ kind: string }> {
  return testAgent.until(({ results }) => {
    const mine = results.filter((each) => each.operationId === operationId);
    return mine.map(({ result }) => result).find(({ kind }) => kind !== 'continuing');
  });
}

function received(operationId: OperationId): Promise<void> {
  const value = create(runner.ReportReceivedSchema, { operationId });
  return testAgent.send({ case: 'reportReceived', value });
}

test('the runner proves itself, tells what it is and can do, and takes the inventory', async () => {
  addDisk('vda');
  startRunner();
  const value = create(agent.InspectSchema, {});
  const order = { operationId: 'i', kind: { case: 'inspect' as const, value } };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, order) });
  const result = await finalOf('i');
  expect(result).toMatchObject({
    kind: 'complete',
    observations: { inventory: { bootId: 'boot-1', devices: [{ serial: 'S-vda' }] } },
  });
  const [hello] = testAgent.heard.hellos;
  expect(hello).toMatchObject({ bootId: 'boot-1', interruptedOperationId: '' });
  expect(hello?.steps.map(({ name }) => name)).toEqual([
    'deploy.erase_devices',
    'deploy.erase_devices_metadata',
  ]);
  expect(Buffer.from(hello?.system?.uuid ?? []).toString('hex')).toBe(guid);
});

test('the runner erases on order and sends evidence just before the report', async () => {
  addDisk('vda');
  addDisk('sda', { discardSupported: false });
  startRunner();
  await testAgent.send(await eraseOrder('a'));
  expect(await finalOf('a')).toEqual({ kind: 'complete' });
  const [evidence] = testAgent.heard.evidence;
  expect(evidence).toMatchObject({ operationId: 'a', bootId: 'boot-1' });
  expect(evidence?.devices.map(({ verdict }) => verdict)).toEqual([1, 1]);
  const kinds = testAgent.heard.results.map(({ result }) => result.kind);
  expect(kinds.at(-1)).toBe('complete');
});

test('the runner finishes a step while the agent is away, and reports it later', async () => {
  const fault = { kind: 'slow', operation: 'discard', delayMs: 400 };
  addDisk('vda', { faults: [fault] });
  startRunner();
  await testAgent.send(await eraseOrder('a'));
  await testAgent.until(({ results }) => results[0]);
  testAgent.hangUp();
  expect(await finalOf('a')).toEqual({ kind: 'complete' });
  expect(testAgent.heard.hellos).toHaveLength(2);
  await received('a');
  await testAgent.send(await eraseOrder('a'));
  await testAgent.until(({ results }) =>
    results.find(({ result }) => result.kind === 'retryAfter'),
  );
});

test('the runner stops a step on Cancel and answers both', async () => {
  addDisk('sda', {
    discardSupported: false,
    faults: [{ kind: 'slow', operation: 'write', delayMs: 20 }],
  });
  startRunner();
  await testAgent.send(await eraseOrder('a'));
  await testAgent.until(({ results }) => results[0]);
  const value = create(agent.CancelSchema, { operationId: 'a' });
  const order = { operationId: 'a/cancel', kind: { case: 'cancel' as const, value } };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, order) });
  expect(await finalOf('a')).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(await finalOf('a/cancel')).toEqual({ kind: 'complete' });
});

test('a step that is prepared begins only when the agent says so', async () => {
  const begun: string[] = [];
  const late: Step = {
    description: { name: 'deploy.late' },
    run: async (context) => {
      begun.push((await context.requestBegin()).kind);
      return { result: { kind: 'complete' } };
    },
  };
  testAgent.answerBegin();
  startRunner({ steps: [late] });
  const value = create(agent.RunStepSchema, { step: 'deploy.late', mode: agent.StepMode.RUN });
  const kind = { case: 'runStep', value } as const;
  const order = create(runner.OrderSchema, { operationId: 'op', kind });
  await testAgent.send({ case: 'order', value: order });
  const answer = async (sequence: bigint, said: runner.BeginAnswer['answer']): Promise<void> => {
    await testAgent.until(({ questions }) => questions.find((each) => each.sequence === sequence));
    const fields = { operationId: 'op', sequence, answer: said };
    const made = create(runner.BeginAnswerSchema, fields);
    await testAgent.send({ case: 'beginAnswer', value: made });
  };
  await answer(1n, { case: 'wait', value: 'frozen' });
  await answer(2n, { case: undefined });
  expect(begun).toEqual([]);
  const told = () => testAgent.heard.results.map(({ result }) => result);
  expect(told().filter((each) => 'begun' in each)).toEqual([]);
  await answer(3n, { case: 'granted', value: true });
  await testAgent.until(({ results }) => results.find(({ result }) => result.kind === 'complete'));
  expect(begun).toEqual(['granted']);
  expect(told().filter((each) => 'begun' in each)).toMatchObject([{ kind: 'continuing' }]);
});

test('the runner keeps its key within a boot and makes a new one for the next', async () => {
  startRunner();
  await testAgent.until(({ hellos }) => hellos[0]);
  const stop = async () => {
    const [first] = runners.splice(0);
    first?.over.abort();
    await first?.ended;
  };
  await stop();
  startRunner();
  await testAgent.until(({ hellos }) => hellos[1]);
  await stop();
  writeFileSync(join(folder, 'dmi'), JSON.stringify({ uuid: guid, bootId: 'boot-2' }));
  startRunner();
  await testAgent.until(({ hellos }) => hellos[2]);
  const keys = testAgent.heard.hellos.map(({ publicKey }) =>
    Buffer.from(publicKey).toString('hex'),
  );
  expect(keys[1]).toBe(keys[0]);
  expect(keys[2]).not.toBe(keys[0]);
});

test('the runner says nothing to a server with another certificate', async () => {
  const { port } = testAgent;
  const dialer = grpcDialer({ host: '127.0.0.1', port, fingerprint: 'ab'.repeat(32) }, clock);
  await expect(dialer.dial()).rejects.toThrow(/shows no certificate with SHA-256 abab/);
  startRunner({ dialer });
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(testAgent.heard.hellos).toEqual([]);
});

test('the runner reports a step that throws as an internal failure', async () => {
  addDisk('vda');
  const broken = { ...eraseDevices, run: () => Promise.reject(new Error('broken step')) };
  startRunner({ steps: [broken] });
  await testAgent.send(await eraseOrder('a'));
  expect(await finalOf('a')).toMatchObject({ type: 'internal', message: 'broken step' });
});

test('the runner ends if its record cannot be saved', async () => {
  addDisk('vda');
  const real = nodeDisk();
  let full = false;
  const disk = {
    ...real,
    writeAtomic: (path: string, bytes: Uint8Array, mode: number) =>
      full ? Promise.reject(new Error('no space')) : real.writeAtomic(path, bytes, mode),
  };
  startRunner({ disk });
  await testAgent.until(({ hellos }) => hellos[0]);
  full = true;
  await testAgent.send(await eraseOrder('a'));
  const [only] = runners.splice(0);
  await expect(only?.ended).rejects.toThrow('no space');
  expect(testAgent.heard.results).toEqual([]);
});

test('the inventory says so if the machine has more than it holds', async () => {
  const devices = fileDisks(folder, clock);
  addDisk('vda');
  const { devices: found, signs } = await devices.list();
  const [vda] = found;
  if (vda === undefined) throw new Error('no disk');
  const many = Array.from({ length: 257 }, (_, at) => ({ ...vda, name: `vd${at}` }));
  startRunner({ devices: { ...devices, list: async () => ({ devices: many, signs }) } });
  const value = create(agent.InspectSchema, {});
  const order = { operationId: 'i', kind: { case: 'inspect' as const, value } };
  await testAgent.send({ case: 'order', value: create(runner.OrderSchema, order) });
  expect(await finalOf('i')).toEqual({
    kind: 'failed',
    type: 'unsupported',
    message: 'the machine has 257 block devices; at most 256 are supported',
  });
});

test('reports and evidence stay small when many disks fail with long messages', async () => {
  const fault = { kind: 'ioError', operation: 'discard' };
  for (let at = 0; at < 60; at++) {
    writeFileSync(
      join(folder, `d${at}.json`),
      JSON.stringify({ serial: `S-${at}-${'x'.repeat(200)}`, faults: [fault] }),
    );
    writeFileSync(join(folder, `d${at}.img`), Buffer.alloc(64 * 1024, 'PATTERN!'));
  }
  startRunner();
  await testAgent.send(await eraseOrder('a'));
  const result = await finalOf('a');
  expect(result).toMatchObject({
    kind: 'failed',
    type: 'ioError',
    message: expect.stringMatching(/^60 of 60 devices are not proved erased: S-0-x.*\(cut\)$/),
    detail: expect.stringMatching(/\(cut\)$/),
  });
  expect(JSON.stringify(result).length).toBeLessThan(6 * 1024);
  const [evidence] = testAgent.heard.evidence;
  const lines = evidence?.devices.flatMap(({ log }) => log) ?? [];
  expect(lines.length).toBeLessThanOrEqual(160);
});
