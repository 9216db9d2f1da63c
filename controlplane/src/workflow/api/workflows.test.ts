/** Workflows through the real API of a control plane on loopback; no agent was ever connected. */
import { HostState, Role, RunKind, WorkflowRunState } from '@rackwright/messages';
import { operatorClients } from '@rackwright/rpc';
import { afterEach, beforeEach, expect, test } from 'vitest';
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

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterEach(() => fixture.stop());

const source = `
description: Say hello
steps:
  - name: hello
    script: echo hello {{ vars.who }}
    idempotent: true
    destructive: false
variables:
  who: { type: string, default: world, description: Whom to greet }
`;

const hello = { templateId: 'hello', template: { source } };

async function addHost(n: number, kind?: RunKind): Promise<string> {
  const record = preparedHost(n, { state: HostState.MANAGEABLE, kind });
  await putHost(fixture.store, record);
  return `hosts/h${n}`;
}

test('a workflow starts its first run when it is created, on the host', async () => {
  const { workflows, templates, hosts } = fixture;
  await templates.createTemplate(hello);
  const parent = await addHost(1);
  const made = await workflows.createWorkflow({ parent, workflowId: 'hello' });
  expect(made.name).toBe('hosts/h1/workflows/hello');
  expect(made.status?.run?.state).toBe(WorkflowRunState.RUNNING);
  expect(made.status?.run?.name).toBe('hosts/h1/workflows/hello/runs/1');
  const host = await hosts.getHost({ name: parent });
  expect(host.status?.run?.kind).toBe(RunKind.WORKFLOW);
  expect(host.status?.run?.workflowRun).toBe(made.status?.run?.name);
  expect(made.status?.run?.run?.number).toBe(host.status?.run?.number);
});

test('a start on a busy host is refused at once, naming the run and since when', async () => {
  const { workflows, templates } = fixture;
  await templates.createTemplate(hello);
  const parent = await addHost(1, RunKind.CLEAN);
  const refused = await failureOf(workflows.createWorkflow({ parent, workflowId: 'hello' }));
  expect(refused.kind).toBe('failedPrecondition');
  expect(refused.message).toMatch(/busy: clean 1 holds the host .* since 20/);
  expect((await failureOf(workflows.getWorkflow({ name: `${parent}/workflows/hello` }))).kind).toBe(
    'notFound',
  );
});

test('every variable that a template can declare can be given', async () => {
  const { workflows, templates, plans } = fixture;
  const longest = `n${'-_9'.repeat(20)}`;
  const value = 'ü'.repeat(4_096);
  const declared = source.replace('who:', `${longest}: {}\n  ntp-server: {}\n  who:`);
  await templates.createTemplate({ templateId: 'hello', template: { source: declared } });
  const parent = await addHost(1);
  const variables = { [longest]: value, 'ntp-server': 'time.example.org' };
  const workflow = { template: 'templates/hello', variables };
  await plans.planRun({ parent, run: { case: 'workflow', value: workflow } });
  const made = await workflows.createWorkflow({
    parent,
    workflowId: 'hello',
    workflow: { spec: { variables } },
  });
  expect(made.status?.notRunnable).toBe('');
  expect(made.spec?.variables).toEqual(variables);
});

test('a request with invalid names and variables is refused with each wrong field', async () => {
  const { workflows } = fixture;
  const parent = await addHost(1);
  const spec = { variables: { '1a': 'x' }, pendingTimeout: { seconds: 1n } };
  const fields = await violatedFields(
    workflows.createWorkflow({ parent, workflowId: 'Hello', workflow: { spec } }),
  );
  expect(fields).toEqual([
    'workflow_id',
    'workflow.spec.variables',
    'workflow.spec.pending_timeout',
  ]);
});

const as = async (tokenId: string) =>
  operatorClients(fixture.channel, await tokenFor(fixture, tokenId, Role.OPERATOR));

/** Ann claims h1, and asks for a run of the template there, which is pending. */
async function pendingOfAnn(templateSource: string, disabled: boolean) {
  const [ann, bob] = [await as('ann'), await as('bob')];
  const template = { source: templateSource };
  await fixture.templates.createTemplate({ templateId: 'hello', template });
  const parent = await addHost(1);
  await ann.hosts.claimHost({ name: parent, reason: 'mine' });
  const workflow = { spec: { disabled } };
  const made = await ann.workflows.createWorkflow({ parent, workflowId: 'hello', workflow });
  if (disabled) await ann.workflows.runWorkflow({ name: made.name });
  const { status } = await ann.workflows.getWorkflow({ name: made.name });
  expect(status?.run?.state).toBe(WorkflowRunState.PENDING);
  return { ann, bob, parent, name: made.name };
}

test.each([
  ['disabled', source, true],
  ['template', source.replace('default: world, ', ''), false],
])('a run that waits (%s) starts in the name of who lets it', async (reason, text, off) => {
  const { ann, bob, parent, name } = await pendingOfAnn(text, off);
  const change = (who: string, disabled: boolean) => ({
    workflow: { name, spec: { variables: { who }, disabled } },
    updateMask: { paths: ['spec.variables', 'spec.disabled'] },
  });
  const before = await bob.workflows.getWorkflow({ name });
  expect(before.status?.run?.waiting?.reason).toBe(reason);
  const given = await bob.workflows.updateWorkflow(change('bob', false));
  expect(given.status?.run).toMatchObject({
    state: WorkflowRunState.PENDING,
    requestedBy: 'token:bob',
    waiting: { reason: 'host', message: expect.stringContaining('claimed by token:ann') },
  });
  expect((await bob.hosts.getHost({ name: parent })).status?.run).toBeUndefined();
  const own = await ann.workflows.updateWorkflow(change('ann', false));
  expect(own.status?.run).toMatchObject({
    ...{ state: WorkflowRunState.RUNNING, requestedBy: 'token:ann', variables: { who: 'ann' } },
  });
});

/** Greets and more: the template that Bob writes instead of Ann's. */
const another = source.replace('echo hello', 'echo goodbye');

/** Bob's template is in Ann's pending run, which now may start. */
async function changedByBob() {
  const { ann, bob, parent, name } = await pendingOfAnn(
    source.replace('default: world, ', ''),
    false,
  );
  const updateMask = { paths: ['source'] };
  const change = { template: { name: 'templates/hello', source: another }, updateMask };
  await bob.templates.updateTemplate(change);
  return { ann, bob, parent, name };
}

test('a pending run starts in the name of who has changed its template since', async () => {
  const { ann, bob, parent, name } = await changedByBob();
  await settled(fixture.store);
  const { status } = await bob.workflows.getWorkflow({ name });
  expect(status?.run).toMatchObject({
    state: WorkflowRunState.PENDING,
    requestedBy: 'token:bob',
    waiting: { reason: 'host', message: expect.stringContaining('claimed by token:ann') },
  });
  expect((await bob.hosts.getHost({ name: parent })).status?.run).toBeUndefined();
  const own = await ann.workflows.updateWorkflow({
    workflow: { name, spec: { variables: { who: 'ann' } } },
    updateMask: { paths: ['spec.variables'] },
  });
  expect(own.status?.run).toMatchObject({
    ...{ state: WorkflowRunState.RUNNING, requestedBy: 'token:ann' },
  });
});

test('a pending run whose requester changes the template starts as theirs', async () => {
  const { ann, name } = await pendingOfAnn(source.replace('default: world, ', ''), false);
  const updateMask = { paths: ['source'] };
  const template = { name: 'templates/hello', source };
  await ann.templates.updateTemplate({ template, updateMask });
  await settled(fixture.store);
  const { status } = await ann.workflows.getWorkflow({ name });
  expect(status?.run).toMatchObject({
    ...{ state: WorkflowRunState.RUNNING, requestedBy: 'token:ann' },
  });
});

test('a run that is requested after a change of its template is its requester’s', async () => {
  const { ann, bob, name } = await pendingOfAnn(source, true);
  await ann.workflows.cancelWorkflow({ name, reason: 'again' });
  const updateMask = { paths: ['source'] };
  const change = { template: { name: 'templates/hello', source: another }, updateMask };
  await bob.templates.updateTemplate(change);
  await ann.workflows.runWorkflow({ name });
  const enabled = await ann.workflows.updateWorkflow({
    workflow: { name, spec: { disabled: false } },
    updateMask: { paths: ['spec.disabled'] },
  });
  expect(enabled.status?.run).toMatchObject({
    ...{ state: WorkflowRunState.RUNNING, requestedBy: 'token:ann' },
  });
});

test('a change of anything else leaves a pending run to who has requested it', async () => {
  const { bob, name } = await pendingOfAnn(source, true);
  const changed = await bob.workflows.updateWorkflow({
    workflow: { name, spec: { pendingTimeout: { seconds: 7_200n }, disabled: true } },
    updateMask: { paths: ['spec.pending_timeout', 'spec.disabled'] },
  });
  expect(changed.status?.run?.requestedBy).toBe('token:ann');
});
