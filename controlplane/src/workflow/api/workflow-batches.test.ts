/** Batches through the real API; no agent was ever connected, so that runs wait where they are. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import {
  agent,
  HostState,
  Role,
  RunKind,
  RunPhase,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { afterImmediates } from '@rackwright/platform/testing';
import { operatorClients } from '@rackwright/rpc';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { tokenFor } from '../../services/access.fixture.ts';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  settled,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

/** vitest's own is one second, which a loaded machine does not keep. */
const patienceMs = 60_000;

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source } });
});

afterEach(() => fixture.stop());

const source = `
steps:
  - { name: hello, script: "echo hello", idempotent: true, destructive: false }
`;

async function addHosts(
  count: number,
  kindOf: (n: number) => RunKind | undefined = () => undefined,
) {
  for (let n = 1; n <= count; n++) {
    const record = preparedHost(n, { state: HostState.MANAGEABLE, kind: kindOf(n) });
    await putHost(fixture.store, record);
  }
}

const spec = (given: object = {}) => ({
  template: 'templates/hello',
  hosts: { rack: 'racks/r1' },
  ...given,
});

test('a batch runs a limited number of hosts at once, the busy ones last', async () => {
  const { workflowBatches, hosts } = fixture;
  await addHosts(5, (n) => (n === 1 ? RunKind.CLEAN : undefined));
  const workflowBatch = { spec: spec({ maxParallel: 2 }) };
  const made = await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  expect(made.status).toMatchObject({ pending: 3, running: 2, failed: 0 });
  const named = made.status?.hosts.map(({ host, run }) => [host, run]);
  expect(named?.slice(0, 3)).toEqual([
    ['hosts/h1', ''],
    ['hosts/h2', 'hosts/h2/workflows/hello/runs/1'],
    ['hosts/h3', 'hosts/h3/workflows/hello/runs/1'],
  ]);
  const h2 = await hosts.getHost({ name: 'hosts/h2' });
  expect(h2.status?.run?.workflowRun).toBe('hosts/h2/workflows/hello/runs/1');
  expect((await hosts.getHost({ name: 'hosts/h4' })).status?.run).toBeUndefined();
});

test('a host says that it waits for its slot in a batch, while it may still get one', async () => {
  const { workflowBatches, workflows, hosts } = fixture;
  await addHosts(2);
  const workflowBatch = { spec: spec({ maxParallel: 1 }) };
  await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  const toDo = [
    'see who has its slots: rackwright workflow batch get b1',
    'or give it up: rackwright workflow batch cancel b1 --reason WHY',
  ];
  const name = 'hosts/h2/workflows/hello';
  const ofWorkflow = await workflows.explainWorkflow({ name });
  expect(ofWorkflow.blocker).toBe('its slot in workflowBatches/b1');
  expect(ofWorkflow.unblock).toEqual(toDo);
  expect(ofWorkflow.causes[0]?.text).toContain('lets 1 at once; 1 have a slot');
  const ofHost = await hosts.explainHost({ name: 'hosts/h2' });
  expect(ofHost.blocker, 'what keeps it now, whoever has a slot').not.toContain('its slot');
  expect(ofHost.unblock).not.toContain(toDo[1]);
  expect(ofHost.causes.at(-1)?.text).toContain('workflowBatches/b1 has chosen it');
  const withSlot = await hosts.explainHost({ name: 'hosts/h1' });
  expect(withSlot.unblock).not.toContain(toDo[0]);
  await workflowBatches.cancelWorkflowBatch({ name: 'workflowBatches/b1', reason: 'no' });
  const after = await hosts.explainHost({ name: 'hosts/h2' });
  expect(after.unblock).not.toContain(toDo[0]);
  expect((await failureOf(workflows.explainWorkflow({ name }))).kind).toBe('notFound');
});

test('asked only to validate, a batch answers its hosts and starts nothing', async () => {
  const { workflowBatches } = fixture;
  await addHosts(3);
  const workflowBatch = { spec: spec({ hosts: { names: ['hosts/h1', 'hosts/h3'] } }) };
  const request = { workflowBatchId: 'b1', workflowBatch, validateOnly: true };
  const shown = await workflowBatches.createWorkflowBatch(request);
  expect(shown.status?.hosts.map(({ host }) => host)).toEqual(['hosts/h1', 'hosts/h3']);
  const missing = await failureOf(workflowBatches.getWorkflowBatch({ name: 'workflowBatches/b1' }));
  expect(missing.kind).toBe('notFound');
});

test('hosts that refuse are failures, and enough of them stop the batch', async () => {
  const { workflowBatches, hosts } = fixture;
  await addHosts(4);
  await hosts.holdHost({ name: 'hosts/h1', scope: 1, reason: 'a look by hand' });
  await hosts.holdHost({ name: 'hosts/h2', scope: 1, reason: 'a look by hand' });
  const workflowBatch = { spec: spec({ maxFailures: 2 }) };
  await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  await vi.waitFor(async () => {
    const { status } = await workflowBatches.getWorkflowBatch({ name: 'workflowBatches/b1' });
    expect(status).toMatchObject({ failed: 2, pending: 2, running: 0 });
    expect(status?.stoppedReason).toContain('2 of at most 2 failed: hosts/h1, hosts/h2');
    expect(status?.endTime).toBeDefined();
    expect(status?.hosts[0]?.message).toContain('work is held by user:admin');
  }, patienceMs);
});

test('a cancelled batch starts no further host and ends the runs under way', async () => {
  const { workflowBatches, workflows } = fixture;
  await addHosts(3);
  await workflowBatches.createWorkflowBatch({
    workflowBatchId: 'b1',
    workflowBatch: { spec: spec() },
    requestId: 'r1',
  });
  const name = 'workflowBatches/b1';
  await workflowBatches.cancelWorkflowBatch({ name, reason: 'wrong rack' });
  await vi.waitFor(async () => {
    const { status } = await workflowBatches.getWorkflowBatch({ name });
    expect(status).toMatchObject({ cancelled: 3, running: 0, pending: 0 });
    expect(status?.stoppedReason).toBe('cancelled by user:admin: wrong rack');
    expect(status?.endTime).toBeDefined();
  }, patienceMs);
  const { status } = await workflows.getWorkflow({ name: 'hosts/h1/workflows/hello' });
  expect(status?.run?.state).toBe(WorkflowRunState.CANCELLED);
  const none = await failureOf(workflows.getWorkflow({ name: 'hosts/h2/workflows/hello' }));
  expect(none.kind).toBe('notFound');
});

const as = async (tokenId: string) =>
  operatorClients(fixture.channel, await tokenFor(fixture, tokenId, Role.OPERATOR));

/** Ann claims h1, and runs a batch on it and on h2. */
async function batchOfAnn() {
  const [ann, bob] = [await as('ann'), await as('bob')];
  await addHosts(2);
  await ann.hosts.claimHost({ name: 'hosts/h1', reason: 'mine' });
  const workflowBatch = { spec: spec({ maxParallel: 2 }) };
  await ann.workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  return { ann, bob, name: 'workflowBatches/b1' };
}

async function shownHosts(name: string) {
  const { status } = await fixture.workflowBatches.getWorkflowBatch({ name });
  return status?.hosts.map(({ state }) => state);
}

const { RUNNING, CANCELLED } = WorkflowRunState;

test('a batch that another cancels keeps the run that the host’s user has requested', async () => {
  const { workflowBatches, hosts } = fixture;
  const { ann, bob, name } = await batchOfAnn();
  const refused = await failureOf(bob.hosts.abortRun({ name: 'hosts/h1', reason: 'in the way' }));
  expect(refused.message).toContain('claimed by token:ann');
  await bob.workflowBatches.cancelWorkflowBatch({ name, reason: 'in the way' });
  await settled(fixture.store);
  expect(await shownHosts(name)).toEqual([RUNNING, CANCELLED]);
  const h1 = await hosts.getHost({ name: 'hosts/h1' });
  expect(h1.status?.run?.abort).toBeUndefined();
  const h2 = await hosts.getHost({ name: 'hosts/h2' });
  expect(h2.status?.run?.abort?.by).toBe('token:bob');
  await bob.workflowBatches.cancelWorkflowBatch({ name, reason: 'once more' });
  await ann.workflowBatches.cancelWorkflowBatch({ name, reason: 'if you must' });
  await vi.waitFor(
    async () => expect(await shownHosts(name)).toEqual([CANCELLED, CANCELLED]),
    patienceMs,
  );
  const { status } = await workflowBatches.getWorkflowBatch({ name });
  expect(status?.stoppedReason).toBe('cancelled by token:ann: if you must');
});

test('a batch that an administrator cancels ends also the runs on claimed hosts', async () => {
  const { bob, name } = await batchOfAnn();
  await bob.workflowBatches.cancelWorkflowBatch({ name, reason: 'in the way' });
  await fixture.workflowBatches.cancelWorkflowBatch({ name, reason: 'fire' });
  await vi.waitFor(
    async () => expect(await shownHosts(name)).toEqual([CANCELLED, CANCELLED]),
    patienceMs,
  );
});

test('the refusal to cancel another’s run on a claimed host names the claim', async () => {
  const { bob } = await batchOfAnn();
  const name = 'hosts/h1/workflows/hello';
  const refused = await failureOf(bob.workflows.cancelWorkflow({ name, reason: 'in the way' }));
  expect(refused.kind).toBe('failedPrecondition');
  expect(refused.message).toContain('claimed by token:ann');
});

test('a batch starts steps that another wrote since in the name of that other', async () => {
  const { workflowBatches } = fixture;
  const [ann, bob] = [await as('ann'), await as('bob')];
  await addHosts(2);
  await ann.hosts.claimHost({ name: 'hosts/h2', reason: 'mine' });
  const workflowBatch = { spec: spec({ maxParallel: 1 }) };
  await ann.workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  await bob.templates.updateTemplate({
    template: { name: 'templates/hello', source: source.replace('hello', 'bye') },
    updateMask: { paths: ['source'] },
  });
  await ann.hosts.abortRun({ name: 'hosts/h1', reason: 'go on' });
  await vi.waitFor(async () => {
    const { status } = await workflowBatches.getWorkflowBatch({ name: 'workflowBatches/b1' });
    expect(status?.hosts[1]).toMatchObject({
      state: WorkflowRunState.FAILED,
      message: expect.stringContaining('claimed by token:ann'),
    });
  }, patienceMs);
});

async function readHost(id: string) {
  const kept = await fixture.store.get(storeKey('hosts', id));
  if (kept.kind !== 'found') throw new Error('no host');
  return { record: fromBinary(wire.HostRecordSchema, kept.value), revision: kept.revision };
}

/** The run's operation was sent, and its agent is away: an abort waits for the agent. */
async function sendOperation(id: string): Promise<void> {
  const key = storeKey('hosts', id);
  await vi.waitFor(async () => {
    const { record, revision } = await readHost(id);
    if (record.operation?.operation === undefined) throw new Error('no operation');
    record.operation.sendTime = record.operation.createTime;
    record.operation.sentTo = create(agent.JournalSchema, { id: 'j1', generation: 1n });
    const bytes = toBinary(wire.HostRecordSchema, record);
    expect((await fixture.store.put(key, bytes, revision)).kind).toBe('ok');
  }, patienceMs);
}

test('a cancelled batch rests while the run that it has aborted waits for its agent', async () => {
  const { workflowBatches, hosts, store } = fixture;
  await addHosts(1);
  await workflowBatches.createWorkflowBatch({
    ...{ workflowBatchId: 'b1', workflowBatch: { spec: spec() } },
  });
  await sendOperation('h1');
  await workflowBatches.cancelWorkflowBatch({ name: 'workflowBatches/b1', reason: 'wrong rack' });
  await vi.waitFor(async () => {
    const { status } = await hosts.getHost({ name: 'hosts/h1' });
    expect(status?.run).toMatchObject({ phase: RunPhase.WAITING, abort: { reason: 'wrong rack' } });
  }, patienceMs);
  await settled(store);
  const again = { name: 'hosts/h1/workflows/hello', reason: 'enough', requestId: 'q1' };
  await fixture.workflows.cancelWorkflow(again);
  const { record } = await readHost('h1');
  expect(record.requestIds, 'a repetition ends no later run').toContainEqual(
    expect.stringMatching(/:q1$/),
  );
  await settled(store);
  const read = vi.spyOn(store, 'get');
  await afterImmediates(500);
  const workflows = read.mock.calls.filter(([key]) => key.startsWith('workflows.'));
  expect(workflows).toEqual([]);
});

test('pending runs go with the batch that owns them, running ones go on', async () => {
  const { workflowBatches, workflows } = fixture;
  await addHosts(2, (n) => (n === 1 ? RunKind.CLEAN : undefined));
  const workflowBatch = { spec: spec({ maxParallel: 2 }) };
  await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  const waiting = await workflows.getWorkflow({ name: 'hosts/h1/workflows/hello' });
  expect(waiting.status?.run).toMatchObject({ state: WorkflowRunState.PENDING });
  expect(waiting.status?.run?.waiting?.reason).toBe('run');
  expect(waiting.status?.run?.requestedBy).toBe('workflowBatches/b1');
  await workflowBatches.deleteWorkflowBatch({ name: 'workflowBatches/b1' });
  await vi.waitFor(async () => {
    const gone = await failureOf(workflows.getWorkflow({ name: 'hosts/h1/workflows/hello' }));
    expect(gone.kind).toBe('notFound');
  }, patienceMs);
  const going = await workflows.getWorkflow({ name: 'hosts/h2/workflows/hello' });
  expect(going.status?.run?.state).toBe(WorkflowRunState.RUNNING);
});

test('a wrong batch is refused with its wrong fields', async () => {
  const create = (given: object) =>
    fixture.workflowBatches.createWorkflowBatch({
      workflowBatchId: 'b1',
      workflowBatch: { spec: spec(given) },
    });
  await addHosts(1);
  expect(await violatedFields(create({ hosts: {}, maxParallel: 0 }))).toEqual([
    'workflow_batch.spec.max_parallel',
    'workflow_batch.spec.hosts',
  ]);
  expect(
    await violatedFields(create({ template: 'templates/none', hosts: { names: ['hosts/h9'] } })),
  ).toEqual(['workflow_batch.spec.template', 'workflow_batch.spec.hosts.names[0]']);
});

test('the report on the hosts of a batch is read in pages, of some states only', async () => {
  const { workflowBatches } = fixture;
  await addHosts(5);
  const workflowBatch = { spec: spec({ maxParallel: 2 }) };
  await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  const parent = 'workflowBatches/b1';
  const read = async (states: WorkflowRunState[]): Promise<string[][]> => {
    const pages: string[][] = [];
    let pageToken = '';
    do {
      const page = await workflowBatches.listWorkflowBatchHosts({
        ...{ parent, states, pageSize: 2, pageToken },
      });
      pages.push(page.hosts.map(({ host }) => host.replace('hosts/', '')));
      pageToken = page.nextPageToken;
    } while (pageToken !== '');
    return pages;
  };
  expect(await read([])).toEqual([['h1', 'h2'], ['h3', 'h4'], ['h5']]);
  expect(await read([WorkflowRunState.PENDING])).toEqual([['h3', 'h4'], ['h5']]);
  expect(await read([WorkflowRunState.FAILED])).toEqual([[]]);
  const { hosts, nextPageToken } = await workflowBatches.listWorkflowBatchHosts({
    ...{ parent, pageSize: 1 },
  });
  expect(hosts[0]?.run).toBe('hosts/h1/workflows/hello/runs/1');
  const failures = [
    { parent: 'b1', states: [], pageToken: '' },
    { parent, states: [99 as WorkflowRunState], pageToken: '' },
    { parent, states: [WorkflowRunState.FAILED], pageToken: nextPageToken },
  ].map(async (request) => failureOf(workflowBatches.listWorkflowBatchHosts(request)));
  for (const failure of await Promise.all(failures)) expect(failure.kind).toBe('invalidArgument');
});

test('a page of batches is bounded by what is sent, not by what is kept', async () => {
  const { workflowBatches, store } = fixture;
  const long = (letter: string) => letter.repeat(63);
  const template = `templates/${long('t')}`;
  const hosts = Array.from({ length: 900 }, (_, n) => {
    const id = `${n}${long('h')}`.slice(0, 63);
    return { host: `hosts/${id}`, state: WorkflowRunState.RUNNING, run: '1' };
  });
  for (let n = 1; n <= 25; n++) {
    const name = `workflowBatches/b${n}`;
    const kept = { workflowBatch: { name, uid: `u${n}`, spec: { template }, status: { hosts } } };
    const record = create(wire.WorkflowBatchRecordSchema, kept);
    const value = toBinary(wire.WorkflowBatchRecordSchema, record);
    await store.put(`workflowBatches.b${n}`, value, 'absent');
  }
  const seen: string[] = [];
  let pageToken = '';
  do {
    const page = await workflowBatches.listWorkflowBatches({ pageSize: 1_000, pageToken });
    seen.push(...page.workflowBatches.map(({ name }) => name));
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  expect(new Set(seen).size).toBe(25);
});

test('a host that has as many workflows as it may gets none more from a batch', async () => {
  const { workflowBatches, store } = fixture;
  await addHosts(2);
  for (let n = 0; n < 256; n++) {
    const record = create(wire.WorkflowRecordSchema, {
      workflow: {
        name: `hosts/h1/workflows/t${n}`,
        status: { hostUid: 'u1' },
      },
    });
    const value = toBinary(wire.WorkflowRecordSchema, record);
    await store.put(`workflows.h1.t${n}`, value, 'absent');
  }
  const workflowBatch = { spec: spec({ maxFailures: 0 }) };
  await workflowBatches.createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch });
  await vi.waitFor(async () => {
    const { status } = await workflowBatches.getWorkflowBatch({ name: 'workflowBatches/b1' });
    expect(status?.hosts[0]?.message).toBe('hosts/h1 has 256 workflows; at most 256 are kept.');
    expect(status?.hosts[1]?.run).toBe('hosts/h2/workflows/hello/runs/1');
  }, patienceMs);
});
