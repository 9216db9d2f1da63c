/** The next action for a workflow, by its context. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  asTemplateId,
  asWorkflowUid,
  ClaimSchema,
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  userActor,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { useOf } from '../host/index.ts';
import { decideWorkflow, type WorkflowAction, type WorkflowSnapshot } from './decide.ts';
import { acceptRun, endWithState, latestRun, runsKeptMax } from './record.ts';
import type { StartOrder } from './rendering.ts';

const nowMs = Date.UTC(2026, 0, 1);
const id = { hostId: 'h1', templateId: asTemplateId('t') };
const name = 'hosts/h1/workflows/t';
const order: StartOrder = {
  kind: 'workflow',
  workflowRun: `${name}/runs/1`,
  workflowUid: asWorkflowUid('w1'),
  templateDigest: 'd1',
  steps: [],
  timeoutMs: undefined,
};

function workflow(disabled = false, host = hostWith()): wire.WorkflowRecord {
  const made = create(wire.WorkflowRecordSchema, {
    workflow: { name, uid: asWorkflowUid('w1'), spec: { disabled }, status: { hostUid: 'u1' } },
  });
  const by = { requestedBy: userActor('a'), actor: userActor('a'), ownerUid: '', variables: {} };
  return acceptRun(
    made,
    id,
    { ...by, requestId: 'r1', templateDigest: 'd1', plan: undefined, use: useOf(host) },
    nowMs,
  );
}

const runOf = (workflowRun: string, outcome?: RunOutcome) =>
  create(RunSchema, {
    kind: workflowRun === '' ? RunKind.CLEAN : RunKind.WORKFLOW,
    number: asRunNumber(7),
    workflowRun,
    phase: outcome === undefined ? RunPhase.RUNNING : RunPhase.ENDED,
    outcome: outcome ?? RunOutcome.UNSPECIFIED,
    startTime: timestampFromMs(nowMs),
  });

const hostWith = (run?: ReturnType<typeof runOf>, uid = 'u1') =>
  create(wire.HostRecordSchema, {
    host: {
      name: 'hosts/h1',
      uid,
      status: { state: HostState.MANAGEABLE, ...(run === undefined ? {} : { run }) },
    },
  });

const snapshot = (changes: Partial<WorkflowSnapshot> = {}): WorkflowSnapshot => ({
  nowMs,
  host: hostWith(),
  finished: [],
  unreadable: new Set<string>(),
  ownerGone: false,
  sourceBy: undefined,
  render: () => ({ kind: 'ok', order }),
  ...changes,
});

const stateAfter = (action: WorkflowAction) =>
  action.kind === 'write' ? latestRun(action.record)?.state : action.kind;

test('a pending run that nothing keeps is started', () => {
  expect(decideWorkflow(workflow(), id, snapshot())).toEqual({ kind: 'start', order });
});

test('a run starts in the name of who has changed the template since it was asked for', () => {
  const changed = { ...order, templateDigest: 'd2' };
  const render = () => ({ kind: 'ok', order: changed }) as const;
  const own = snapshot({ render, sourceBy: userActor('a') });
  expect(decideWorkflow(workflow(), id, own).kind).toBe('start');
  expect(decideWorkflow(workflow(), id, snapshot({ render })).kind, 'unknown since when').toBe(
    'start',
  );
  const others = snapshot({ render, sourceBy: userActor('b') });
  const action = decideWorkflow(workflow(), id, others);
  if (action.kind !== 'write') throw new Error(action.kind);
  expect(action.record.actor).toBe('user:b');
  expect(latestRun(action.record)?.requestedBy).toBe('user:b');
  expect(decideWorkflow(action.record, id, others)).toEqual({ kind: 'start', order: changed });
});

test('a run that another has asked for does not go onto the claimed host of who changes it', () => {
  const claimed = hostWith();
  const claim = create(ClaimSchema, { by: userActor('b') });
  Object.assign(claimed.host?.status ?? {}, { claim });
  const render = () => ({ kind: 'ok', order: { ...order, templateDigest: 'd2' } }) as const;
  const others = snapshot({ host: claimed, render, sourceBy: userActor('b') });
  expect(decideWorkflow(workflow(false, claimed), id, others).kind, 'as who asked').toBe('start');
});

test('a run that the host carries already is noted, never ordered again, also once ended', () => {
  const ours = runOf(`${name}/runs/1`);
  const { RUNNING } = WorkflowRunState;
  expect(stateAfter(decideWorkflow(workflow(), id, snapshot({ host: hostWith(ours) })))).toBe(
    RUNNING,
  );
  const over = runOf(`${name}/runs/1`, RunOutcome.SUCCEEDED);
  expect(stateAfter(decideWorkflow(workflow(), id, snapshot({ finished: [over] })))).toBe(RUNNING);
  const displaced = hostWith(runOf(''));
  displaced.finishedRuns = [over];
  expect(stateAfter(decideWorkflow(workflow(), id, snapshot({ host: displaced })))).toBe(RUNNING);
});

test('a run whose record cannot be decoded is not lost, whatever else is missing', () => {
  const begun = decideWorkflow(
    workflow(),
    id,
    snapshot({ host: hostWith(runOf(`${name}/runs/1`)) }),
  );
  if (begun.kind !== 'write') throw new Error(begun.kind);
  const after = (...keys: string[]) =>
    stateAfter(decideWorkflow(begun.record, id, snapshot({ unreadable: new Set(keys) })));
  expect(after('runs.u1.6')).toBe(WorkflowRunState.FAILED);
  expect(after('runs.u1.6', 'runs.u1.7')).toBe('none');
});

test('a run goes with its host and with its batch, before anything else is looked at', () => {
  const render = () => {
    throw new Error('nobody asked for its steps');
  };
  expect(decideWorkflow(workflow(), id, snapshot({ host: undefined, render })).kind).toBe('remove');
  const anew = hostWith(undefined, 'u2');
  expect(decideWorkflow(workflow(), id, snapshot({ host: anew, render })).kind).toBe('remove');
  const dropped = decideWorkflow(workflow(), id, snapshot({ ownerGone: true, render }));
  expect(stateAfter(dropped)).toBeUndefined();
});

test('a run goes with the use of its host in which it was asked for', () => {
  const claimed = hostWith();
  if (claimed.host?.status === undefined) throw new Error('no status');
  claimed.host.status.claim = create(ClaimSchema, { by: 'user:b' });
  const dropped = decideWorkflow(workflow(), id, snapshot({ host: claimed }));
  expect(dropped).toMatchObject({ kind: 'orphan', number: 1n });
  expect(dropped.kind === 'orphan' && dropped.record && latestRun(dropped.record)).toBeUndefined();
});

test('a run that was cancelled or timed out while the host accepted it is ended there', () => {
  const cancelled = endWithState(workflow(), WorkflowRunState.CANCELLED, undefined, nowMs);
  const carried = snapshot({ host: hostWith(runOf(`${name}/runs/1`)) });
  expect(decideWorkflow(cancelled, id, carried)).toMatchObject({ kind: 'abort', hostRun: 7n });
  const others = snapshot({ host: hostWith(runOf('hosts/h1/workflows/other/runs/1')) });
  expect(decideWorkflow(cancelled, id, others)).toEqual({ kind: 'none' });
});

test('a run whose end nobody knows is not taken for a success', () => {
  const started = decideWorkflow(
    workflow(),
    id,
    snapshot({ host: hostWith(runOf(`${name}/runs/1`)) }),
  );
  if (started.kind !== 'write') throw new Error('it was not noted');
  const lost = decideWorkflow(started.record, id, snapshot());
  expect(stateAfter(lost)).toBe(WorkflowRunState.FAILED);
});

test('a pending run ends by its deadline, whatever it waits for', () => {
  for (const isDisabled of [false, true]) {
    const late = snapshot({ nowMs: nowMs + 7_200_000 });
    expect(stateAfter(decideWorkflow(workflow(isDisabled), id, late))).toBe(
      WorkflowRunState.TIMED_OUT,
    );
  }
});

test('deciding comes to rest, starts nothing late, and keeps bounded history', () => {
  const surroundings = fc.record({
    laterMs: fc.constantFrom(0, 60_000, 7_200_000),
    held: fc.constantFrom('', 'clean', 'ours', 'ended'),
    bad: fc.boolean(),
    ownerGone: fc.boolean(),
    disabled: fc.boolean(),
  });
  fc.assert(
    fc.property(surroundings, fc.nat(15), (given, earlier) => {
      let record = workflow(given.disabled);
      for (let number = 0; number < earlier; number++) {
        const ended = endWithState(record, WorkflowRunState.SUCCEEDED, undefined, nowMs);
        const by = {
          requestedBy: userActor('a'),
          actor: userActor('a'),
          ownerUid: '',
          variables: {},
        };
        record = acceptRun(
          ended,
          id,
          { ...by, requestId: '', templateDigest: 'd1', plan: undefined, use: useOf(hostWith()) },
          nowMs,
        );
      }
      expect(record.earlierRuns.length).toBeLessThanOrEqual(runsKeptMax);
      const settled = endWithState(record, WorkflowRunState.SUCCEEDED, undefined, nowMs);
      expect(settled.earlierRuns.length).toBeLessThan(runsKeptMax);
      const ours = latestRun(record)?.name ?? '';
      const runs = {
        '': undefined,
        clean: runOf(''),
        ours: runOf(ours),
        ended: runOf(ours, RunOutcome.FAILED),
      };
      const now = snapshot({
        nowMs: nowMs + given.laterMs,
        host: hostWith(runs[given.held]),
        ownerGone: given.ownerGone,
        render: () => (given.bad ? { kind: 'bad', text: 'no' } : { kind: 'ok', order }),
      });
      let action = decideWorkflow(record, id, now);
      for (let pass = 0; action.kind === 'write'; pass++) {
        expect(pass, 'it comes to rest').toBeLessThan(4);
        record = action.record;
        action = decideWorkflow(record, id, now);
      }
      if (action.kind !== 'start') return;
      const { held, laterMs, bad, ownerGone, disabled } = given;
      expect({ held, bad, ownerGone, disabled }).toEqual({
        held: '',
        bad: false,
        ownerGone: false,
        disabled: false,
      });
      expect(laterMs).toBeLessThan(3_600_000);
    }),
  );
});

test('a run of an earlier workflow of the same name is not its own', () => {
  const earlier = runOf(`${name}/runs/1`, RunOutcome.SUCCEEDED);
  earlier.workflowUid = asWorkflowUid('w0');
  expect(decideWorkflow(workflow(), id, snapshot({ host: hostWith(earlier) })).kind).toBe('start');
  const own = runOf(`${name}/runs/1`, RunOutcome.SUCCEEDED);
  own.workflowUid = asWorkflowUid('w1');
  expect(stateAfter(decideWorkflow(workflow(), id, snapshot({ host: hostWith(own) })))).toBe(
    WorkflowRunState.RUNNING,
  );
});
