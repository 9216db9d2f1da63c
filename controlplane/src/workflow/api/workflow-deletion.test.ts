/** Deletions of workflows while a batch has not read yet how their runs have ended. */
import { HostState, WorkflowRunState } from '@rackwright/messages';
import { StoreError } from '@rackwright/store';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  settled,
  startFixture,
} from '../../services/rpc.fixture.ts';

/** vitest's own is one second, which a loaded machine does not keep. */
const patienceMs = 60_000;

const batch = 'workflowBatches/b1';
const workflow = 'hosts/h1/workflows/hello';
const source = 'steps: [{ name: a, script: "true", idempotent: true, destructive: false }]';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
  await fixture.templates.createTemplate({ templateId: 'hello', template: { source } });
  const host = preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined });
  await putHost(fixture.store, host);
});

afterEach(() => fixture.stop());

/**
 * The batch's record is written this often; later writes fail until the returned call, which also
 * wakes the batch.
 */
function writesOfBatch(writes: number): () => Promise<void> {
  const { store } = fixture;
  const put = store.put.bind(store);
  const key = 'workflowBatches.b1';
  let left = writes;
  const spied = vi.spyOn(store, 'put').mockImplementation(async (given, ...rest) => {
    if (given === key && left-- <= 0) throw new StoreError('unavailable', 'away');
    return put(given, ...rest);
  });
  return async () => {
    spied.mockRestore();
    const kept = await store.get(key);
    if (kept.kind === 'found') await store.put(key, kept.value, kept.revision);
  };
}

/** The batch on h1, whose run has been aborted; the batch's record does not say so yet. */
async function endedUnread(writes: number): Promise<() => Promise<void>> {
  const { workflowBatches, hosts, workflows } = fixture;
  const writeAgain = writesOfBatch(writes);
  const hostNames = { hosts: { names: ['hosts/h1'] } };
  const workflowBatch = { spec: { template: 'templates/hello', ...hostNames } };
  await workflowBatches
    .createWorkflowBatch({ workflowBatchId: 'b1', workflowBatch })
    .catch(() => undefined);
  await hosts.abortRun({ name: 'hosts/h1', reason: 'enough' });
  await vi.waitFor(async () => {
    const { status } = await workflows.getWorkflow({ name: workflow });
    expect(status?.run?.state).toBe(WorkflowRunState.CANCELLED);
  }, patienceMs);
  return writeAgain;
}

async function batchEnds() {
  return vi.waitFor(async () => {
    const { status } = await fixture.workflowBatches.getWorkflowBatch({ name: batch });
    expect(status?.endTime).toBeDefined();
    return status;
  }, patienceMs);
}

test.each([
  ['before it has noted the run', 2],
  ['after it has noted the run', 3],
])('a workflow stays until its batch has read how it ended: %s', async (_when, writes) => {
  const { workflows } = fixture;
  const writeAgain = await endedUnread(writes);
  const refused = await failureOf(workflows.deleteWorkflow({ name: workflow }));
  expect(refused).toMatchObject({
    kind: 'failedPrecondition',
    message: `${batch} has not noted yet how ${workflow}/runs/1 ended; try again soon`,
  });
  await writeAgain();
  const status = await batchEnds();
  expect(status?.hosts[0]?.state).toBe(WorkflowRunState.CANCELLED);
  await workflows.deleteWorkflow({ name: workflow });
});

test('a deletion with an etag survives a write between its mark and its end', async () => {
  const { workflows, store } = fixture;
  const made = await workflows.createWorkflow({
    ...{ parent: 'hosts/h1', workflowId: 'hello', workflow: { spec: { disabled: true } } },
  });
  const remove = store.delete.bind(store);
  const spied = vi.spyOn(store, 'delete').mockImplementationOnce(async (key, revision) => {
    const kept = await store.get(key);
    if (kept.kind === 'found') await store.put(key, kept.value, kept.revision);
    return remove(key, revision);
  });
  await workflows.deleteWorkflow({ name: workflow, etag: made.etag, requestId: 'r1' });
  expect(spied.mock.calls.map(([key]) => key)).toContain('workflows.h1.hello');
  expect((await failureOf(workflows.getWorkflow({ name: workflow }))).kind).toBe('notFound');
});

test('a host whose workflow is gone gets no second run from its batch', async () => {
  const { workflows, hosts, store } = fixture;
  const writeAgain = await endedUnread(3);
  const kept = await store.get('workflows.h1.hello');
  if (kept.kind !== 'found') throw new Error('no workflow');
  await store.delete('workflows.h1.hello', kept.revision);
  await settled(store);
  await writeAgain();
  const status = await batchEnds();
  expect(status?.hosts[0]).toMatchObject({
    state: WorkflowRunState.FAILED,
    message: expect.stringContaining('deleted before its end was noted'),
  });
  expect((await failureOf(workflows.getWorkflow({ name: workflow }))).kind).toBe('notFound');
  const { status: ofHost } = await hosts.getHost({ name: 'hosts/h1' });
  expect(ofHost?.run?.workflowRun).toBe(`${workflow}/runs/1`);
});

test('a workflow goes with its runs of a batch that is deleted', async () => {
  const writeAgain = await endedUnread(2);
  await fixture.workflowBatches.deleteWorkflowBatch({ name: batch });
  await fixture.workflows.deleteWorkflow({ name: workflow });
  await writeAgain();
});
