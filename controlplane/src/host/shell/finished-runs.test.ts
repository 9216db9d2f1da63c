/** Records of finished runs and of their steps' output, through crashes and two replicas. */
import { create, equals, fromBinary } from '@bufbuild/protobuf';
import {
  asWorkflowUid,
  FailureType,
  HostGoal,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import type { CallResult, WorkflowStep } from '../pass/types.ts';
import { callNobody } from '../pass/webhook-order.ts';
import { complete, connectAgent, proved, toInspect } from '../testing/plain-agent.ts';
import { type Rig, rigWith } from '../testing/rig.ts';
import { rendered, script, workflowRun, wrote } from '../testing/templates.ts';

const manageable = { goal: HostGoal.MANAGEABLE };

function finished(rig: Rig, number: number) {
  return rig.read(storeKey('runs', 'u1', String(number)), wire.FinishedRunRecordSchema);
}

const workflow = (...steps: WorkflowStep[]) =>
  ({
    kind: 'workflow',
    workflowRun,
    workflowUid: asWorkflowUid('w1'),
    templateDigest: 'd1',
    steps,
    timeoutMs: undefined,
  }) as const;

test('a run that has ended stands under its number, as the host’s record says it', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  expect(finished(rig, 1)).toBeUndefined();
  await plain.report(proved());
  const { run } = rig.status();
  expect(finished(rig, 1)).toMatchObject({ host: 'hosts/h1', hostUid: 'u1' });
  expect(run && equals(RunSchema, finished(rig, 1)?.run ?? create(RunSchema), run)).toBe(true);
});

test('a run that another follows in the same pass is kept by the host meanwhile', async () => {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  expect(rig.status().run?.kind).toBe(RunKind.INSPECT);
  expect(finished(rig, 1)?.run).toMatchObject({
    kind: RunKind.VERIFY,
    phase: RunPhase.ENDED,
    outcome: RunOutcome.SUCCEEDED,
  });
  expect(rig.record().finishedRuns.map(({ number }) => number)).toEqual([1n]);
  await plain.report(complete());
  expect(rig.record().finishedRuns, 'the next write lets it go').toEqual([]);
});

test('killed between the host’s record and the run’s, nothing is lost or told twice', async () => {
  const rig = rigWith({});
  const dying = await rig.replica({ crashAt: 'cp.reportStored' });
  const plain = await connectAgent(rig, dying);
  await plain.report(proved());
  expect(rig.record().finishedRuns).toHaveLength(1);
  expect(finished(rig, 1)).toBeUndefined();
  const kept = rig.record().finishedRuns[0];
  const after = await rig.replica();
  const again = await connectAgent(rig, after);
  await again.report(complete());
  expect(rig.record().finishedRuns).toEqual([]);
  expect(kept && equals(RunSchema, finished(rig, 1)?.run ?? create(RunSchema), kept)).toBe(true);
  expect(rig.disk.changesOf(storeKey('runs', 'u1', '1'))).toHaveLength(1);
});

test('the host record keeps a run until the run’s own record is written', async () => {
  const rig = rigWith(manageable);
  let away = true;
  const replica = await rig.replica({
    faults: ({ key }) => ({ kind: away && key.startsWith('runs.') ? 'requestLost' : 'none' }),
  });
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  expect(rig.status().run?.outcome).toBe(RunOutcome.SUCCEEDED);
  expect(finished(rig, 1)).toBeUndefined();
  expect(rig.lines.join('\n')).toContain('an ended run is kept later');
  const asked = replica.hosts
    .request('h1', { kind: 'inspect' }, { actor: userActor('test') })
    .catch((error: unknown) => String(error));
  expect(await rig.during(asked)).toContain('did not confirm the change');
  expect(rig.status().run?.number).toBe(1n);
  away = false;
  await replica.request({ kind: 'inspect' });
  expect(rig.status().run?.number).toBe(2n);
  expect(finished(rig, 1)?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
});

test('two replicas that see the end write one record, which says what the host says', async () => {
  const rig = rigWith(manageable);
  const first = await rig.replica({ id: 'first' });
  await rig.replica({ id: 'second' });
  const plain = await connectAgent(rig, first);
  await plain.report(proved());
  await rig.advance(60_000);
  expect(rig.disk.changesOf(storeKey('runs', 'u1', '1'))).toHaveLength(1);
  expect(finished(rig, 1)?.run?.endTime).toEqual(rig.status().run?.endTime);
});

test('the output of a step is stored before the host record says that it has ended', async () => {
  const rig = rigWith(manageable);
  const replica = await rig.replica({ crashAt: 'cp.reportStored' });
  const plain = await connectAgent(rig, replica);
  await plain.report(proved()).catch(() => undefined);
  const after = await rig.replica();
  const again = await connectAgent(rig, after);
  await after.request(workflow(script('a')));
  await toInspect(rig, again);
  const { id } = again.last();
  await again.report(wrote('hello'));
  const key = storeKey('stepOutputs', ...id.split('/'));
  const kept = rig.read(key, wire.StepOutputRecordSchema);
  expect(kept).toMatchObject({ operationId: id, exit: { code: 0, outputBytes: 5n } });
  expect(new TextDecoder().decode(kept?.tail)).toBe('hello');
  const changes = rig.disk.changesOf(storeKey('hosts', 'h1'));
  const ended = changes.find(
    (change) => change.kind === 'put' && hasExit(fromBinary(wire.HostRecordSchema, change.value)),
  );
  expect(rig.disk.changesOf(key).at(-1)?.revision).toBeLessThan(ended?.revision ?? 0);
});

function hasExit({ host }: wire.HostRecord): boolean {
  return host?.status?.run?.steps.some(({ exit }) => exit !== undefined) === true;
}

test('a replica that makes no calls answers a webhook as failed, and says so', async () => {
  const answers: CallResult[] = [];
  callNobody({ id: 'u1/2/0/1', arguments: {}, deadlineMs: 0, rack: '' }, (result) => {
    answers.push(result);
    return Promise.reject(new Error('the store is away'));
  });
  expect(answers).toMatchObject([{ kind: 'failed', type: 'unsupported' }]);
  const rig = rigWith(manageable);
  rig.put('fleet.fleet', wire.FleetRecordSchema, {
    fleet: { spec: { templates: { webhookUrls: ['https://hooks.example.org/'] } } },
  });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  const call = { arguments: { url: 'https://hooks.example.org/x' } };
  await replica.request(workflow(rendered('tell', 'webhook', call)));
  await rig.advance(1);
  expect(rig.status().run).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.UNSUPPORTED },
  });
});
