/** Starts that are refused, repeated or left behind, through the real API on loopback. */
import { create } from '@bufbuild/protobuf';
import {
  HostState,
  RunKind,
  RunOutcome,
  RunPhase,
  RunSchema,
  WorkflowRunState,
} from '@rackwright/messages';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { preparedHost, putHost } from '../../services/prepared.fixture.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  startFixture,
} from '../../services/rpc.fixture.ts';

/** vitest's own is one second, which a loaded machine does not keep. */
const patienceMs = 60_000;

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

const parent = 'hosts/h1';
const name = `${parent}/workflows/flash`;
/** No agent of the rack has it, which only the host itself knows. */
const source = 'steps: [{ name: a, bmc: firmware.flash }]\n';

test('a refused run leaves nothing, and takes the request of no earlier one along', async () => {
  const { workflows, templates, hosts } = fixture;
  await templates.createTemplate({ templateId: 'flash', template: { source } });
  await putHost(fixture.store, preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined }));
  const asked = { parent, workflowId: 'flash' };
  expect(await failureOf(workflows.createWorkflow(asked))).toMatchObject({
    kind: 'failedPrecondition',
    message: expect.stringContaining('offers no firmware.flash'),
  });
  expect((await failureOf(workflows.getWorkflow({ name }))).kind).toBe('notFound');
  const first = { ...asked, workflow: { spec: { disabled: true } }, requestId: 'r1' };
  const made = await workflows.createWorkflow(first);
  await workflows.updateWorkflow({
    workflow: { name, spec: { disabled: false } },
    updateMask: { paths: ['spec.disabled'] },
  });
  expect((await failureOf(workflows.runWorkflow({ name }))).message).toContain('firmware.flash');
  const again = await workflows.createWorkflow(first);
  expect(again.uid).toBe(made.uid);
  expect(again.status?.run).toBeUndefined();
  expect((await hosts.getHost({ name: parent })).status?.run).toBeUndefined();
});

test('the numbers of a workflow go on after those that its host still carries', async () => {
  const { workflows, templates } = fixture;
  await templates.createTemplate({ templateId: 'flash', template: { source } });
  const record = preparedHost(1, { state: HostState.MANAGEABLE, kind: RunKind.CLEAN });
  record.finishedRuns = [
    create(RunSchema, {
      kind: RunKind.WORKFLOW,
      phase: RunPhase.ENDED,
      outcome: RunOutcome.SUCCEEDED,
      workflowRun: `${name}/runs/4`,
    }),
  ];
  await putHost(fixture.store, record);
  const workflow = { spec: { disabled: true } };
  const made = await workflows.createWorkflow({ parent, workflowId: 'flash', workflow });
  expect(made.status?.runCount).toBe(4n);
});

test('a workflow starts and ends on a host with a run that cannot be decoded', async () => {
  const { workflows, templates, hosts, store } = fixture;
  const script = 'steps: [{ name: a, script: "true", idempotent: true, destructive: false }]';
  await templates.createTemplate({ templateId: 'flash', template: { source: script } });
  const record = preparedHost(1, { state: HostState.MANAGEABLE, kind: undefined });
  await putHost(store, record);
  await store.put(`runs.${record.host?.uid}.1`, Uint8Array.of(255, 255), 'absent');
  const { status } = await workflows.createWorkflow({ parent, workflowId: 'flash' });
  expect(status?.run?.state).toBe(WorkflowRunState.RUNNING);
  await hosts.abortRun({ name: parent, reason: 'enough' });
  await vi.waitFor(async () => {
    const ended = await workflows.getWorkflow({ name });
    expect(ended.status?.run?.state).toBe(WorkflowRunState.CANCELLED);
  }, patienceMs);
});

test('a run that a host carries of a deleted workflow is ended', async () => {
  const { hosts } = fixture;
  const record = preparedHost(1, { state: HostState.MANAGEABLE, kind: RunKind.WORKFLOW });
  const { run } = record.host?.status ?? {};
  if (run === undefined) throw new Error('no run');
  run.workflowRun = `${name}/runs/1`;
  await putHost(fixture.store, record);
  await vi.waitFor(async () => {
    const { status } = await hosts.getHost({ name: parent });
    expect(status?.run?.abort).toMatchObject({ by: 'system', reason: `${name} is gone` });
  }, patienceMs);
});
