/** The output of a step, read during its run and afterwards; no agent was ever connected. */
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  asReplicaId,
  HostState,
  ReadStepOutputRequestSchema,
  type ReadStepOutputResponseSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { asWriteId, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StepLogs } from '../../agents/index.ts';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  startFixture,
} from '../../services/rpc.fixture.ts';
import { createStepOutputReader } from './step-output.ts';

const name = 'hosts/h1/workflows/hello/runs/1';
const source = `
description: Say hello
steps:
  - { name: hello, script: echo hello, destructive: false }
  - { name: later, script: echo later, destructive: false }
`;

let fixture: Fixture;
let stepLogs: StepLogs;
/** In the host's run: the position of the step. */
let at = { index: 0, run: 0n };

beforeEach(async () => {
  fixture = await startFixture();
  stepLogs = new StepLogs();
  await addSurroundings(fixture);
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source } });
  await putHost(fixture.store, preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined }));
  await fixture.workflows.createWorkflow({ parent: 'hosts/h1', workflowId: 'hello' });
  await changeStep(StepState.RUNNING);
});

afterEach(() => fixture.stop());

const key = storeKey('hosts', 'h1');

/** Puts the step "hello" into its first attempt. */
async function changeStep(state: StepState): Promise<void> {
  for (;;) {
    const found = await fixture.store.get(key);
    if (found.kind === 'absent') throw new Error('no host');
    const record = fromBinary(wire.HostRecordSchema, found.value);
    const run = record.host?.status?.run;
    const index = run?.steps.findIndex(({ title }) => title === 'hello') ?? -1;
    const step = run?.steps[index];
    if (run === undefined || step === undefined) throw new Error('no step');
    Object.assign(step, { state, attempt: 1 });
    run.currentStep = index;
    at = { index, run: run.number };
    const value = toBinary(wire.HostRecordSchema, record);
    const written = await fixture.store.put(
      key,
      value,
      found.revision,
      asWriteId(`w${nodeClock().nowMs()}`),
    );
    if (written.kind === 'ok') return;
  }
}

const operationId = () => `u1/${at.run}/${at.index}/1`;

function write(offset: number, text: string): void {
  const content = new TextEncoder().encode(text);
  const piece = { operationId: operationId(), hostUid: 'u1', offset: BigInt(offset), content };
  stepLogs.take(create(agent.StepLogSchema, piece));
}

async function store(tail: string, outputBytes: number, code = 0): Promise<void> {
  const record = create(wire.StepOutputRecordSchema, {
    operationId: operationId(),
    exit: { code, outputBytes: BigInt(outputBytes), lastOutput: tail },
    tail: new TextEncoder().encode(tail),
  });
  const value = toBinary(wire.StepOutputRecordSchema, record);
  const outputKey = storeKey('stepOutputs', ...operationId().split('/'));
  await fixture.store.put(outputKey, value, 'absent', asWriteId('output'));
}

type Answer = MessageInitShape<typeof ReadStepOutputResponseSchema>;

function read(
  request: MessageInitShape<typeof ReadStepOutputRequestSchema> = {},
  replicaId = 'single',
): AsyncGenerator<Answer, void, undefined> {
  const reader = createStepOutputReader({
    store: fixture.store,
    clock: nodeClock(),
    stepLogs,
    replicaId: asReplicaId(replicaId),
  });
  const whole = create(ReadStepOutputRequestSchema, { name, ...request });
  return reader(whole, { signal: new AbortController().signal });
}

async function lines(answers: AsyncIterable<Answer>): Promise<string[]> {
  const found: string[] = [];
  for await (const answer of answers) found.push(lineOf(answer));
  return found;
}

function lineOf({ step, offset, content, exit }: Answer): string {
  const text = new TextDecoder().decode(content ?? new Uint8Array());
  return `${step} ${offset} ${text}${exit === undefined ? '' : `exit ${exit.code}`}`;
}

test('the method answers the output so far of the step under way', async () => {
  expect(await lines(read())).toEqual([]);
  write(0, 'one ');
  write(9, 'two');
  expect(await lines(read())).toEqual(['hello 0 one ', 'hello 9 two']);
});

test('the method answers the stored output of an ended step, also after its run', async () => {
  await store('end', 1003, 4);
  await changeStep(StepState.FAILED);
  const expected = ['hello 1000 end', 'hello 1003 exit 4'];
  expect(await lines(read())).toEqual(expected);
  expect(await lines(read({ step: 'hello', attempt: 1 }, 'another'))).toEqual(expected);
});

test('a follow of a step repeats no output, and ends with the step’s exit', async () => {
  write(0, 'ab');
  const answers = read({ follow: true });
  const next = async () => {
    const { value } = await answers.next();
    return value === undefined ? 'over' : lineOf(value);
  };
  expect(await next()).toBe('hello 0 ab');
  const waiting = next();
  write(2, 'cd');
  expect(await waiting).toBe('hello 2 cd');
  const last = next();
  await store('bcdef', 6);
  await changeStep(StepState.SUCCEEDED);
  stepLogs.ended('u1', operationId());
  expect(await last).toBe('hello 4 ef');
  expect(await next()).toBe('hello 6 exit 0');
  expect(await next()).toBe('over');
});

test('a follow also ends with a step without stored output', async () => {
  let isOver = false;
  const following = lines(read({ follow: true })).finally(() => {
    isOver = true;
  });
  // The running control plane may be restarting the step.
  const fail = async () => {
    await changeStep(StepState.FAILED);
    return isOver;
  };
  await expect.poll(fail, { interval: 20, message: 'its output ends' }).toBe(true);
  expect(await following).toEqual(['hello 0 ']);
});

test('the method names the replica that has the output of a running step', async () => {
  const rackKey = storeKey('racks', 'r1');
  const found = await fixture.store.get(rackKey);
  if (found.kind === 'absent') throw new Error('no rack');
  const rack = fromBinary(wire.RackRecordSchema, found.value);
  rack.sessionReplica = 'cp-2';
  const value = toBinary(wire.RackRecordSchema, rack);
  await fixture.store.put(rackKey, value, found.revision, asWriteId('elsewhere'));
  const refused = await failureOf(lines(read({ follow: true })));
  expect(refused).toMatchObject({ kind: 'failedPrecondition', reason: 'AGENT_ELSEWHERE' });
  expect(refused.message).toContain('The agent of racks/r1 is connected to replica cp-2');
  expect(await lines(read({}, 'cp-2'))).toEqual([]);
});

test.each([
  ['no run', { name: 'hosts/h1' }, 'is "hosts/h1"; it must name a run'],
  ['a step that is not there', { step: 'helo' }, 'is "helo"; the run has hello, later'],
])('the method refuses %s', async (_name, request, problem) => {
  const refused = await failureOf(lines(read(request)));
  expect(refused.kind).toBe('invalidArgument');
  const [violation] = 'violations' in refused ? refused.violations : [];
  expect(violation?.description).toContain(problem);
});

test('the method says that a step has not run yet', async () => {
  for (const request of [{ step: 'later' }, { attempt: 2 }]) {
    expect(await failureOf(lines(read(request)))).toMatchObject({ reason: 'NOT_STARTED' });
  }
  const missing = read({ name: 'hosts/h1/workflows/hello/runs/7' });
  expect(await failureOf(lines(missing))).toMatchObject({ kind: 'notFound' });
});

test('the method is served', async () => {
  await store('end', 3);
  await changeStep(StepState.SUCCEEDED);
  const served: string[] = [];
  for await (const answer of fixture.workflows.readStepOutput({
    name,
    step: 'hello',
    follow: true,
  })) {
    served.push(lineOf(answer));
  }
  expect(served).toEqual(['hello 0 end', 'hello 3 exit 0']);
});
