/** Workflows: what ends by its time, and what is swept once nobody owns it. */
import { fromBinary } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  userActor,
  WorkflowRunState,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bmcTemplate, done, failedWith, Office, refusal } from './office.ts';
import type { Site } from './replica.ts';

const { PENDING, RUNNING, SUCCEEDED, TIMED_OUT } = WorkflowRunState;
const minuteMs = 60_000;
const workflow = 'hosts/h1/workflows/clear';

/** What the timeline of h1 says, oldest first. */
function timeline(site: Site): string[] {
  return site.disk.changesOf('hosts.h1').flatMap((change) => {
    if (change.kind !== 'put') return [];
    return [fromBinary(wire.HostRecordSchema, change.value).change?.cause ?? ''];
  });
}

/** Whether anything is kept under a key. */
function isKept(site: Site, key: string): boolean {
  return site.disk.changesOf(key).at(-1)?.kind === 'put';
}

/** Removes h1, the agent doing what it is asked. */
async function removeHost(office: Office): Promise<void> {
  const { site, replica } = office;
  const uid = site.record('h1')?.host?.uid ?? '';
  await replica.hosts.request(
    'h1',
    { kind: 'delete', reason: 'sold' },
    { actor: userActor('test') },
  );
  for (let turn = 0; turn < 8 && site.record('h1') !== undefined; turn++) {
    await site.run(1_000);
    const record = site.record('h1');
    if (record?.forgetting === true) await replica.forgotten(uid);
    else if (record?.operation?.operation !== undefined) {
      await replica.report(record.operation.operation, done);
    }
  }
  await site.run(1_000);
  expect(site.record('h1')).toBeUndefined();
}

test('tinkerbell-L15: what nobody picks up is timed out, restarts or not', async () => {
  const office = await Office.open();
  await office.create('h1', 'clear', { pendingTimeout: { seconds: 600n } });
  await office.pass(5 * minuteMs);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: PENDING });
  office.kill();
  const next = await Office.start(office.site, 'a');
  await next.hello();
  await next.pass(4 * minuteMs);
  expect(await next.run('h1', 'clear')).toMatchObject({ state: PENDING });
  await next.pass(2 * minuteMs);
  const run = await next.run('h1', 'clear');
  expect(run).toMatchObject({ state: TIMED_OUT, error: { type: FailureType.PENDING_TIMEOUT } });
  expect(run?.error?.message).toContain('templates/clear does not exist');
  expect(timeline(next.site)).toContain(`${workflow}/runs/1 timed out before it started`);
  await next.template('clear', bmcTemplate('clear'));
  await next.pass(minuteMs);
  expect(next.ordered('h1')).toEqual([]);

  await next.pass(30 * minuteMs);
  const swept = await next.clients.workflows.getWorkflow({ name: workflow });
  expect(swept.status).toMatchObject({ runCount: 1n, notRunnable: '' });
  expect(swept.status?.run).toBeUndefined();
  expect(
    await refusal(next.clients.workflows.getWorkflowRun({ name: `${workflow}/runs/1` })),
  ).toMatch(/^notFound/);
  const lines = timeline(next.site).filter((cause) => cause.includes('timed out before'));
  expect(lines).toHaveLength(1);
  expect((await next.again('h1', 'clear')).status?.run).toMatchObject({ number: 2n });
});

test('a run ends by the time of its step, and is swept once that is told', async () => {
  const office = await Office.open();
  const step = '{ name: clear, bmc: management.clear_event_log, timeout: 2m }';
  await office.template('clear', `timeout: 30m\nsteps:\n  - ${step}\n`);
  await office.create('h1', 'clear');
  const operation = office.last('h1');
  await office.pass(4 * minuteMs);
  await office.replica.report(operation, failedWith('deadline', 'it took too long'));
  await office.pass(1_000);
  const run = await office.run('h1', 'clear');
  expect(run).toMatchObject({ state: TIMED_OUT });
  expect(isKept(office.site, 'runs.u1.1')).toBe(true);
  await office.pass(40 * minuteMs);
  expect(isKept(office.site, 'runs.u1.1')).toBe(false);
  const { status } = await office.clients.workflows.getWorkflow({ name: workflow });
  expect(status?.run).toBeUndefined();
  const line = 'workflow 1 (clear/runs/1) timed out: clear: no result before its deadline';
  expect(timeline(office.site)).toContain(line);
});

test('a report after a run has timed out is reported once, and changes nothing', async () => {
  const office = await Office.open();
  const step = '{ name: clear, bmc: management.clear_event_log, timeout: 2m }';
  await office.template('clear', `timeout: 10m\nsteps:\n  - ${step}\n`);
  await office.create('h1', 'clear');
  const operation = office.last('h1');
  await office.pass(5 * minuteMs);
  const ended = await office.run('h1', 'clear');
  expect(ended).toMatchObject({ state: TIMED_OUT });
  const before = timeline(office.site).length;
  await office.replica.report(operation, done);
  await office.replica.report(operation, done);
  await office.pass(1_000);
  const verdicts = office.replica.verdicts();
  expect(verdicts.slice(-2)).not.toContain(agent.ReportAnswer_Verdict.REFUSED);
  expect(timeline(office.site).length - before).toBe(1);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: TIMED_OUT });
});

test('the last ten of the runs that ended are kept, and what they wrote with them', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  await office.create('h1', 'clear');
  await office.report('h1', done);
  for (let number = 2; number <= 13; number++) {
    await office.again('h1', 'clear');
    await office.report('h1', done);
  }
  await office.pass(25 * minuteMs);
  const numbers = Array.from({ length: 13 }, (_, index) => index + 1);
  const kept = numbers.filter((number) => isKept(office.site, `runs.u1.${number}`));
  expect(kept).toEqual([4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
  await office.clients.workflows.deleteWorkflow({ name: workflow, requestId: 'd1' });
  const again = await office.clients.workflows.deleteWorkflow({ name: workflow, requestId: 'd1' });
  expect(again.name).toBe(workflow);
  await office.pass(25 * minuteMs);
  expect(numbers.filter((number) => isKept(office.site, `runs.u1.${number}`))).toEqual([]);
});

test('a repeated deletion leaves what was created since', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  const first = await office.create('h1', 'clear', { disabled: true }, 'd1');
  // Another request of the same id is no deletion.
  await office.clients.workflows.deleteWorkflow({ name: workflow });
  await office.create('h1', 'clear', { disabled: true });
  const gone = await office.clients.workflows.deleteWorkflow({ name: workflow, requestId: 'd1' });
  expect(gone.uid).not.toBe(first.uid);
  const anew = await office.create('h1', 'clear', { disabled: true });
  const again = await office.clients.workflows.deleteWorkflow({ name: workflow, requestId: 'd1' });
  expect(again.uid).toBe(gone.uid);
  const { uid } = await office.clients.workflows.getWorkflow({ name: workflow });
  expect(uid).toBe(anew.uid);
});

test('tinkerbell-L21: what is pending goes with its host, raced and cut short', async () => {
  let broken = 3;
  const office = await Office.open(1, ({ kind, key }) => {
    const isSweep = kind === 'delete' && key.startsWith('workflows.');
    if (isSweep) broken -= 1;
    return { kind: isSweep && broken >= 0 ? 'requestLost' : 'none' };
  });
  const other = await Office.start(office.site, 'b');
  await office.create('h1', 'later');
  await removeHost(office);
  await office.pass(15 * minuteMs);
  expect(isKept(office.site, 'workflows.h1.later')).toBe(false);
  expect(await refusal(office.run('h1', 'later'))).toMatch(/^notFound/);
  const { workflows } = await other.clients.workflows.listWorkflows({ parent: 'hosts/-' });
  expect(workflows).toEqual([]);
  await office.template('later', bmcTemplate('later'));
  await office.pass(15 * minuteMs);
  expect(
    [...office.replica.operations(), ...other.replica.operations()].filter(isWorkflowStep),
  ).toEqual([]);
});

function isWorkflowStep({ kind }: agent.Operation): boolean {
  return kind.case === 'runStep';
}

test('a record that is written late for a removed host is deleted by the next passes', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  await office.create('h1', 'clear');
  await office.report('h1', done);
  await removeHost(office);
  expect(isKept(office.site, 'runs.u1.1')).toBe(false);
  // The turn of another replica that was overtaken by the removal.
  await office.site.put('stepOutputs.u1.1.0.1', new Uint8Array(8));
  await office.site.put('runs.u1.1', new Uint8Array());
  await office.pass(25 * minuteMs);
  expect(isKept(office.site, 'stepOutputs.u1.1.0.1')).toBe(false);
  expect(isKept(office.site, 'runs.u1.1')).toBe(false);
});

test('tinkerbell-L23: a host made again under its name inherits no workflow', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  const made = await office.create('h1', 'clear');
  await office.report('h1', done);
  const { spec } = office.site.record('h1')?.host ?? {};
  await office.create('h1', 'later');
  // What the sweeper has not reached yet is nobody's all the same.
  office.kill();
  const cut = await Office.start(office.site, 'c');
  await cut.hello();
  await removeHost(cut);
  const host = { spec: { rack: spec?.rack ?? '', bmc: spec?.bmc, bootMacs: spec?.bootMacs ?? [] } };
  await cut.clients.hosts.createHost({ hostId: 'h1', host: host as never });
  const parent = 'hosts/h1';
  expect((await cut.clients.workflows.listWorkflows({ parent })).workflows).toEqual([]);
  expect(await refusal(cut.run('h1', 'clear'))).toMatch(/^notFound/);
  const anew = await cut.clients.workflows.createWorkflow({
    parent,
    workflowId: 'clear',
    workflow: { spec: { disabled: true } },
  });
  expect(anew.uid).not.toBe(made.uid);
  expect(anew.status).toMatchObject({ runCount: 0n });
  await cut.pass(15 * minuteMs);
  expect(isKept(cut.site, 'runs.u1.1')).toBe(false);
  expect((await cut.clients.workflows.getWorkflow({ name: workflow })).uid).toBe(anew.uid);
});

test('a batch gives each host one slot, whichever of two control planes looks', async () => {
  const office = await Office.open(6);
  const other = await Office.start(office.site, 'b');
  await office.template('clear', bmcTemplate('clear'));
  const spec = { template: 'templates/clear', hosts: { rack: 'racks/r1' }, maxParallel: 2 };
  const request = { workflowBatchId: 'all', workflowBatch: { spec }, requestId: 'r1' };
  await office.clients.workflowBatches.createWorkflowBatch(request);
  await other.clients.workflowBatches.createWorkflowBatch(request);
  const name = 'workflowBatches/all';
  const reported = new Set<string>();
  for (let turn = 0; turn < 12; turn++) {
    await office.pass(minuteMs);
    const { status } = await other.clients.workflowBatches.getWorkflowBatch({ name });
    expect(status?.running ?? 0).toBeLessThanOrEqual(2);
    for (const operation of office.replica.operations()) {
      if (reported.has(operation.id)) continue;
      reported.add(operation.id);
      const isUnlucky = operation.hostUid === 'u3';
      await office.replica.report(operation, isUnlucky ? failedWith('notApplied', 'no') : done);
      if (isUnlucky) break;
    }
  }
  const { status } = await office.clients.workflowBatches.getWorkflowBatch({ name });
  const runs = status?.hosts.map(({ host }) => office.site.record(host.slice(6))?.runCount);
  expect(runs?.filter((count) => (count ?? 0n) > 1n)).toEqual([]);
  expect(status).toMatchObject({ failed: 1, running: 0 });
  expect(status?.stoppedReason).toContain('1 of at most 1 failed: hosts/h3');
  expect(status?.endTime).toBeDefined();
  expect((status?.succeeded ?? 0) + (status?.pending ?? 0)).toBe(5);
});

test('a batch goes on where it was after its control plane was killed', async () => {
  const office = await Office.open(3);
  await office.template('clear', bmcTemplate('clear'));
  const spec = { template: 'templates/clear', hosts: { rack: 'racks/r1' } };
  const workflowBatchId = 'all';
  await office.clients.workflowBatches.createWorkflowBatch({
    workflowBatchId,
    workflowBatch: { spec },
  });
  expect(await office.run('h1', 'clear')).toMatchObject({ state: RUNNING });
  office.kill();
  const next = await Office.start(office.site, 'a');
  await next.hello();
  const name = 'workflowBatches/all';
  for (const hostId of ['h1', 'h2', 'h3']) {
    await next.pass(1_000);
    const { status } = await next.clients.workflowBatches.getWorkflowBatch({ name });
    expect(status?.running).toBe(1);
    await next.report(hostId, done);
  }
  await next.pass(1_000);
  const { status } = await next.clients.workflowBatches.getWorkflowBatch({ name });
  expect(status).toMatchObject({ succeeded: 3, running: 0, pending: 0 });
  expect(await next.run('h3', 'clear')).toMatchObject({
    number: 1n,
    state: SUCCEEDED,
    requestedBy: name,
  });
});

test('a batch knows its run whatever else was asked of the workflow meanwhile', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  const spec = { template: 'templates/clear', hosts: { rack: 'racks/r1' } };
  const request = { workflowBatchId: 'all', workflowBatch: { spec } };
  await office.clients.workflowBatches.createWorkflowBatch(request);
  for (let index = 0; index < 40; index++) {
    await office.clients.workflows.updateWorkflow({
      workflow: { name: workflow, spec: { variables: {} } },
      updateMask: { paths: ['spec.variables'] },
      requestId: `r${index}`,
    });
  }
  await office.pass(minuteMs);
  const name = 'workflowBatches/all';
  const running = await office.clients.workflowBatches.getWorkflowBatch({ name });
  expect(running.status).toMatchObject({ running: 1, failed: 0 });
  await office.report('h1', done);
  await office.pass(minuteMs);
  const ended = await office.clients.workflowBatches.getWorkflowBatch({ name });
  expect(ended.status).toMatchObject({ running: 0, succeeded: 1, failed: 0 });
  expect(office.site.record('h1')?.runCount).toBe(1n);
});

test('a batch made again under its name takes no run of the earlier one for its own', async () => {
  const office = await Office.open();
  const step = '{ name: clear, bmc: management.clear_event_log, timeout: 2m }';
  await office.template('clear', `timeout: 10m\nsteps:\n  - ${step}\n`);
  const spec = { template: 'templates/clear', hosts: { rack: 'racks/r1' } };
  const request = { workflowBatchId: 'all', workflowBatch: { spec } };
  const name = 'workflowBatches/all';
  await office.clients.workflowBatches.createWorkflowBatch(request);
  await office.report('h1', done);
  await office.pass(minuteMs);
  const first = await office.run('h1', 'clear');
  await office.clients.workflowBatches.deleteWorkflowBatch({ name });
  const anew = await office.clients.workflowBatches.createWorkflowBatch(request);
  await office.pass(1_000);
  const second = await office.run('h1', 'clear');
  expect(second).toMatchObject({ number: 2n, batchUid: anew.uid });
  expect(second?.batchUid).not.toBe(first?.batchUid);
});
