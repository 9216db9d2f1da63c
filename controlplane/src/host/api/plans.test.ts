/** Plans through the operators' API: shown, stored, refused with the changes, started once. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  ClaimSchema,
  CleaningMethod,
  DeletionMode,
  DeviceFate,
  HostRefusal,
  HostState,
  InventorySchema,
  type Plan,
  RunKind,
  RunOutcome,
  RunSchema,
  StepState,
  store as wire,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { type StateStore, storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { plansPerHostMax, sweepPlans } from '../../plan/index.ts';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

let fixture: Fixture;
const parent = 'hosts/h1';

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await putHost(fixture.store, preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined }));
  await see('DISK-1', 480_103_981_056n);
});

afterEach(() => fixture.stop());

async function put(store: StateStore, key: string, value: Uint8Array): Promise<void> {
  const found = await store.get(key);
  await store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
}

/** The runner has seen this disk in the host, and a network card. */
async function see(serial: string, sizeBytes: bigint, uid = 'u1'): Promise<void> {
  const facts = create(wire.HostFactsSchema, {
    hostUid: uid,
    inventory: create(InventorySchema, {
      collectedAt: timestampFromMs(Date.UTC(2026, 0, 1)),
      devices: [
        {
          device: 'sda',
          transport: 1,
          serial,
          sizeBytes,
          model: 'MZ7',
          regions: [{ name: 'sda', sizeBytes, logicalBlockBytes: 512 }],
        },
      ],
      interfaces: [{ name: 'eth0', mac: '52:54:00:00:00:01' }],
    }),
  });
  await put(fixture.store, storeKey('facts', 'h1'), toBinary(wire.HostFactsSchema, facts));
}

const planClean = (): Promise<Plan> =>
  fixture.plans.planRun({ parent, run: { case: 'clean', value: {} } });

test('a clean is shown with steps, disks and what is lost, and nothing is changed', async () => {
  const { etag } = await fixture.hosts.getHost({ name: parent });
  const plan = await planClean();
  expect(plan.kind).toBe(RunKind.CLEAN);
  expect(plan.name).toBe(`${parent}/plans/${plan.hash}`);
  expect(plan.steps.map(({ step }) => step)).toContain('deploy.erase_devices');
  const deviceFate = DeviceFate.ERASED;
  expect(plan.devices).toMatchObject([
    { serial: 'DISK-1', deviceFate, method: CleaningMethod.OVERWRITE, fate: 'erase: overwrite' },
  ]);
  expect(plan.dataLoss).toEqual(['disk DISK-1 (MZ7, 480 GB): all that is on it']);
  expect(plan.refused).toBe('');
  expect(plan.refusal).toBe(HostRefusal.UNSPECIFIED);
  expect((await fixture.hosts.getHost({ name: parent })).etag).toBe(etag);
  expect((await fixture.plans.getPlan({ name: plan.name })).hash).toBe(plan.hash);
  expect((await planClean()).hash).toBe(plan.hash);
});

test('a run that is started by a plan has the steps of the plan, and names the plan', async () => {
  const { name, hash, steps } = await planClean();
  const { status } = await fixture.plans.startPlan({ name, reason: 'as agreed' });
  expect(status?.run).toMatchObject({ kind: RunKind.CLEAN, planHash: hash });
  expect(status?.run?.steps.map((step) => step.name)).toEqual(steps.map(({ step }) => step));
  const { revisions } = await fixture.hosts.listHostRevisions({ name: parent });
  expect(revisions.map(({ cause }) => cause).join('\n')).toContain('as agreed');
});

test('a plan is refused after a disk was swapped, with the difference', async () => {
  const { name } = await planClean();
  await see('DISK-2', 960_197_124_096n);
  const text =
    'the plan does not hold any more: disk DISK-1 (MZ7, 480 GB) is gone; ' +
    'disk DISK-2 (MZ7, 960 GB) is new; plan again';
  const failure = await failureOf(fixture.plans.startPlan({ name }));
  expect(failure.kind).toBe('failedPrecondition');
  expect(failure.message).toContain(text);
  expect((await fixture.plans.getPlan({ name })).refused).toBe(text);
  expect((await fixture.hosts.getHost({ name: parent })).status?.run).toBeUndefined();
  await see('DISK-1', 480_103_981_056n);
  expect((await fixture.plans.startPlan({ name })).status?.run?.kind).toBe(RunKind.CLEAN);
});

test('a plan of a host that is claimed by another says what refuses it', async () => {
  const key = storeKey('hosts', 'h1');
  const found = await fixture.store.get(key);
  if (found.kind !== 'found') throw new Error('no host');
  const record = fromBinary(wire.HostRecordSchema, found.value);
  const claim = create(ClaimSchema, { by: 'user:ann', reason: 'mine' });
  if (record.host?.status !== undefined) record.host.status.claim = claim;
  await put(fixture.store, key, toBinary(wire.HostRecordSchema, record));
  const plan = await planClean();
  expect(plan.refused).toContain('claimed by user:ann');
  expect(plan.refusal).toBe(HostRefusal.CLAIMED);
  expect((await failureOf(fixture.plans.startPlan({ name: plan.name }))).message).toContain(
    'user:ann',
  );
});

test('a request id starts a plan once, also when the plan is no longer kept', async () => {
  const { name } = await planClean();
  const first = await fixture.plans.startPlan({ name, requestId: 'same' });
  await age(name, 25 * 3_600_000);
  expect(await sweepPlans(deps())).toBe(1);
  const again = await fixture.plans.startPlan({ name, requestId: 'same' });
  expect(again.status?.run?.number).toBe(first.status?.run?.number);
  expect((await failureOf(fixture.plans.startPlan({ name, requestId: 'other' }))).kind).toBe(
    'notFound',
  );
});

test('a plan that has expired is not started', async () => {
  const { name } = await planClean();
  await age(name, 25 * 3_600_000);
  const failure = await failureOf(fixture.plans.startPlan({ name }));
  expect(failure.message).toMatch(/the plan has expired at 20.*Z; plan again/);
  const expired = await fixture.plans.getPlan({ name });
  expect(expired.refused).toContain('has expired');
  expect(expired.refusal).toBe(HostRefusal.PLAN_CHANGED);
  expect((await planClean()).name).toBe(name);
  expect((await fixture.plans.startPlan({ name })).status?.run).toBeDefined();
});

const deps = () => ({ store: fixture.store, clock: nodeClock(), random: nodeRandom() });

/** Makes a plan look older. */
async function age(name: string, byMs: number): Promise<void> {
  const key = storeKey('plans', 'u1', name.split('/').at(-1) ?? '');
  const found = await fixture.store.get(key);
  if (found.kind !== 'found') throw new Error('no plan');
  const { plan, basis } = fromBinary(wire.PlanRecordSchema, found.value);
  if (plan === undefined || basis === undefined) throw new Error('no plan');
  const nowMs = nodeClock().nowMs();
  const times = {
    createTime: timestampFromMs(nowMs - byMs),
    expireTime: timestampFromMs(nowMs - byMs + 24 * 3_600_000),
  };
  const older = create(wire.PlanRecordSchema, { plan: { ...plan, ...times }, basis });
  await put(fixture.store, key, toBinary(wire.PlanRecordSchema, older));
}

test('only the newest plans of a host are kept', async () => {
  const plans: Plan[] = [];
  for (let seconds = 1; seconds <= plansPerHostMax + 2; seconds++) {
    const steps = [{ step: 'wait', arguments: { seconds: String(seconds) } }];
    plans.push(await fixture.plans.planRun({ parent, run: { case: 'clean', value: { steps } } }));
  }
  const [first, , third] = plans;
  expect((await failureOf(fixture.plans.getPlan({ name: first?.name ?? '' }))).kind).toBe(
    'notFound',
  );
  expect((await fixture.plans.getPlan({ name: third?.name ?? '' })).hash).toBe(third?.hash);
});

test('a host created again under its name has no plan of the one before', async () => {
  const { name } = await planClean();
  await fixture.hosts.deleteHost({ name: parent });
  await expect.poll(async () => (await fixture.hosts.listHosts({})).hosts).toEqual([]);
  await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
  expect((await failureOf(fixture.plans.getPlan({ name }))).kind).toBe('notFound');
  expect((await failureOf(fixture.plans.startPlan({ name }))).kind).toBe('notFound');
});

test('provisioning is planned with what refuses it', async () => {
  const value = { image: `registry.example/os@sha256:${'1'.repeat(64)}` };
  const plan = await fixture.plans.planRun({ parent, run: { case: 'provision', value } });
  expect(plan.refused).not.toBe('');
  expect(plan.steps.map(({ step }) => step)).toContain('deploy.write_image');
});

test('a disk to be kept that the host has not is refused by its field', async () => {
  const image = `registry.example/os@sha256:${'1'.repeat(64)}`;
  const deploy = { keepDisks: ['disk-1', 'DISK-2'] };
  const failure = await failureOf(fixture.hosts.provisionHost({ name: parent, image, deploy }));
  expect(failure).toMatchObject({
    kind: 'invalidArgument',
    violations: [
      { field: 'deploy.keep_disks[1]', description: expect.stringContaining('one of DISK-1') },
    ],
  });
});

test('a deletion is planned, and started as any other', async () => {
  const value = { mode: DeletionMode.NORMAL };
  const plan = await fixture.plans.planRun({ parent, run: { case: 'delete', value } });
  expect(plan.stages).toEqual(['delete: the agent forgets it, its record goes']);
  const gone = await fixture.plans.startPlan({ name: plan.name, requestId: 'same' });
  expect(gone.status?.state).toBe(HostState.GONE);
  expect((await fixture.plans.startPlan({ name: plan.name, requestId: 'same' })).uid).toBe(
    gone.uid,
  );
});

test('a request that cannot be planned is refused with its wrong fields', async () => {
  const steps = [{ step: 'wait' }, { step: 'deploy.polish' }];
  const plan = (run: Parameters<typeof fixture.plans.planRun>[0]['run']) =>
    fixture.plans.planRun({ parent, ...(run === undefined ? {} : { run }) });
  expect(await violatedFields(plan({ case: 'clean', value: { steps } }))).toEqual([
    'clean.steps[0].arguments.seconds',
    'clean.steps[1].step',
  ]);
  expect(await violatedFields(plan({ case: 'clean', value: { steps: [{ step: '?' }] } }))).toEqual([
    'clean.steps[0].step',
  ]);
  expect(await violatedFields(plan({ case: 'provision', value: { image: '' } }))).toEqual([
    'provision.image',
  ]);
  expect(await violatedFields(plan(undefined))).toEqual(['run']);
  expect(await violatedFields(fixture.plans.startPlan({ name: `${parent}/plans/abc` }))).toEqual([
    'name',
  ]);
  const unknown = fixture.plans.planRun({
    parent: 'hosts/nobody',
    run: { case: 'clean', value: {} },
  });
  expect((await failureOf(unknown)).kind).toBe('notFound');
});

test('a plan says how long such runs took before, the host’s own first', async () => {
  const finished = async (number: bigint, seconds: number) => {
    const run = create(RunSchema, {
      kind: RunKind.CLEAN,
      number: asRunNumber(number),
      outcome: RunOutcome.SUCCEEDED,
      startTime: timestampFromMs(0),
      endTime: timestampFromMs(seconds * 1_000),
      steps: [
        {
          name: 'power.off',
          state: StepState.SUCCEEDED,
          startTime: timestampFromMs(0),
          endTime: timestampFromMs(seconds * 100),
        },
      ],
    });
    const record = create(wire.FinishedRunRecordSchema, { host: parent, hostUid: 'u1', run });
    const key = storeKey('runs', 'u1', String(number));
    await fixture.store.put(key, toBinary(wire.FinishedRunRecordSchema, record), 'absent');
  };
  for (const [number, seconds] of [
    [1n, 100],
    [2n, 700],
    [3n, 300],
  ] as const)
    await finished(number, seconds);
  const plan = await planClean();
  expect(plan.usualDuration?.seconds).toBe(300n);
  expect(plan.steps.find(({ step }) => step === 'power.off')?.usualDuration?.seconds).toBe(30n);
  expect(plan.steps.find(({ step }) => step === 'runner.await')?.usualDuration).toBeUndefined();
});

const source = `
description: Say hello
variables:
  who: { type: string, default: world }
steps:
  - name: hello
    script: |
      echo hello {{ vars.who }} on {{ host.name }}
    destructive: false
    timeout: 5m
  - name: check
    if: steps.hello.exitCode == 0
    hold: look at it
`;

const planHello = (variables: Record<string, string> = {}) =>
  fixture.plans.planRun({
    parent,
    run: { case: 'workflow', value: { template: 'templates/hello', variables } },
  });

test('a workflow is planned with rendered steps, and its run is what the plan says', async () => {
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source } });
  const plan = await planHello({ who: 'ann' });
  expect(plan.refused).toBe('');
  const hello = plan.steps.find(({ title }) => title === 'hello');
  expect(hello?.arguments['script']).toContain('hello ann on hosts/h1');
  expect(hello?.timeout?.seconds).toBe(300n);
  expect(plan.steps.find(({ title }) => title === 'check')?.condition).toContain('exitCode');
  expect(plan.dataLoss).toEqual([]);
  const { name: planName } = plan;
  const call = { name: planName, requestId: 'same', reason: 'as agreed' };
  const { status } = await fixture.plans.startPlan(call);
  const { revisions } = await fixture.hosts.listHostRevisions({ name: parent });
  expect(revisions.map(({ cause }) => cause).join('\n')).toContain('as agreed');
  expect(status?.run).toMatchObject({
    kind: RunKind.WORKFLOW,
    planHash: plan.hash,
    workflowRun: 'hosts/h1/workflows/hello/runs/1',
  });
  expect(status?.run?.steps.map((step) => step.name)).toEqual(plan.steps.map(({ step }) => step));
  await fixture.plans.startPlan({ name: plan.name, requestId: 'same' });
  const name = 'hosts/h1/workflows/hello';
  expect((await fixture.workflows.getWorkflow({ name })).status?.runCount).toBe(1n);
});

test('a workflow’s plan is refused once its template has changed, and leaves nothing', async () => {
  const made = await fixture.templates.createTemplate({
    templateId: 'hello',
    template: { source },
  });
  const { name, hash } = await planHello();
  const template = { name: made.name, source: source.replace('look at it', 'look twice') };
  await fixture.templates.updateTemplate({ template, updateMask: { paths: ['source'] } });
  const failure = await failureOf(fixture.plans.startPlan({ name }));
  expect(failure.message).toContain('the template has been changed');
  expect(failure.message).toContain('look twice');
  expect((await fixture.workflows.listWorkflows({ parent })).workflows).toEqual([]);
  const spec = { disabled: true };
  await fixture.workflows.createWorkflow({ parent, workflowId: 'hello', workflow: { spec } });
  const disabled = await planHello();
  expect(disabled.refused).toContain('is disabled');
  expect(disabled.refusal).toBe(HostRefusal.WORKFLOW_DISABLED);
  expect(disabled.hash).not.toBe(hash);
  const refusal = await failureOf(fixture.plans.startPlan({ name: disabled.name }));
  expect(refusal.message).toContain('is disabled');
  expect(refusal).toMatchObject({ metadata: { refusal: 'WORKFLOW_DISABLED' } });
});

test('no refusal repeats what a template sends to a webhook or a program', async () => {
  const call = (secret: string) => `
steps:
  - name: tell
    webhook:
      url: https://hooks.example.org/${secret}?key=${secret}
      body: my ${secret}
      headers: { authorization: "Bearer ${secret}" }
  - { name: show, script: "echo ${secret}", environment: { TOKEN: ${secret} } }
`;
  const policy = { webhookUrls: ['https://hooks.example.org/'] };
  const updateMask = { paths: ['spec.templates.webhook_urls'] };
  await fixture.fleet.updateFleet({ fleet: { spec: { templates: policy } }, updateMask });
  const template = { source: call('first-secret') };
  const made = await fixture.templates.createTemplate({ templateId: 'hello', template });
  const { name, refused } = await planHello();
  expect(refused).toBe('');
  const changed = { name: made.name, source: call('other-secret') };
  const mask = { paths: ['source'] };
  await fixture.templates.updateTemplate({ template: changed, updateMask: mask });
  const { message } = await failureOf(fixture.plans.startPlan({ name }));
  expect(message).toContain('step tell has another value of body, headers, url');
  expect(message).toContain('step show has another value of environment, script');
  expect(message).not.toContain('secret');
});

test('RunWorkflow with the hash of a plan runs that or nothing', async () => {
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source } });
  const workflow = { spec: { disabled: true } };
  await fixture.workflows.createWorkflow({ parent, workflowId: 'hello', workflow });
  const name = 'hosts/h1/workflows/hello';
  const enabled = { workflow: { name, spec: { disabled: false } } };
  await fixture.workflows.updateWorkflow({ ...enabled, updateMask: { paths: ['spec.disabled'] } });
  const { hash } = await planHello();
  await see('DISK-2', 480_103_981_056n);
  const swapped = fixture.workflows.runWorkflow({ name, planHash: hash });
  expect((await failureOf(swapped)).message).toContain('disk DISK-1 (MZ7, 480 GB) is gone');
  await see('DISK-1', 480_103_981_056n);
  await age(`${parent}/plans/${hash}`, 25 * 3_600_000);
  const expired = fixture.workflows.runWorkflow({ name, planHash: hash });
  expect((await failureOf(expired)).message).toContain('has no plan');
  await planHello();
  const { status } = await fixture.workflows.runWorkflow({ name, planHash: hash });
  expect(status?.run?.run?.planHash).toBe(hash);
});

test('a template that does not fit the host is told instead of a plan', async () => {
  const text = source.replace('who: { type: string, default: world }', 'who: { type: string }');
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source: text } });
  const failure = await failureOf(planHello());
  expect(failure.kind).toBe('failedPrecondition');
  expect(failure.message).toContain('templates/hello: line');
});
