/** Workflows: what is accepted, what waits, what is never done twice. */
import { create } from '@bufbuild/protobuf';
import { agent, NotRunnableKind, RunKind, StepState, WorkflowRunState } from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  bmcTemplate,
  bootRunner,
  done,
  failedWith,
  Office,
  refusal,
  scriptTemplate,
  silentBmc,
} from './office.ts';
import type { Site } from './replica.ts';

const { PENDING, RUNNING, SUCCEEDED, FAILED, CANCELLED } = WorkflowRunState;
const { APPLIED, DUPLICATE, STALE, REFUSED } = agent.ReportAnswer_Verdict;
const minuteMs = 60_000;

/** An office whose host h1 runs a workflow of these steps. */
async function running(...names: string[]): Promise<Office> {
  const office = await Office.open();
  await office.template('clear', bmcTemplate(...names));
  await office.create('h1', 'clear');
  return office;
}

const texts: Readonly<Record<number, string>> = {
  [StepState.PENDING]: 'pending',
  [StepState.RUNNING]: 'running',
  [StepState.SUCCEEDED]: 'succeeded',
  [StepState.FAILED]: 'failed',
  [StepState.SKIPPED]: 'skipped',
};

/** "a succeeded", for each step of the template. */
async function steps(office: Office): Promise<string[]> {
  const run = await office.run('h1', 'clear');
  const named = run?.run?.steps.filter(({ title }) => title !== '') ?? [];
  return named.map(({ title, state }) => `${title} ${texts[state]}`);
}

test('tinkerbell-L1: a template that does not fit starts nothing until it does', async () => {
  const office = await Office.open();
  const made = await office.create('h1', 'clear', { variables: { who: 'me' } });
  expect(made.status?.notRunnable).toBe('templates/clear does not exist');
  expect(made.status?.notRunnableKind).toBe(NotRunnableKind.NO_TEMPLATE);
  expect(made.status?.run).toMatchObject({ state: PENDING, waiting: { reason: 'template' } });
  expect(office.ordered('h1')).toEqual([]);
  const advice = async (): Promise<string> => {
    const name = 'hosts/h1/workflows/clear';
    return (await office.clients.workflows.explainWorkflow({ name })).unblock.join('; ');
  };
  expect(await advice()).toMatch(/template create clear FILE(?!.*template update)/);

  await office.template('clear', bmcTemplate('clear'));
  await office.pass(1_000);
  expect(await advice()).toMatch(/template update clear FILE(?!.*template create)/);
  const bad = await office.run('h1', 'clear');
  expect(bad?.state).toBe(PENDING);
  expect(bad?.waiting?.message).toMatch(/templates\/clear: line \d+, column \d+: .*who/);

  const fixed = await office.update('h1', 'clear', { variables: {} }, 'spec.variables');
  expect(fixed.status?.notRunnableKind).toBe(NotRunnableKind.UNSPECIFIED);
  expect(fixed.status?.run?.state).toBe(RUNNING);
  expect(office.last('h1').kind.case).toBe('runStep');
});

test('a template that changes changes nothing of a run under way', async () => {
  const office = await running('one', 'two');
  const before = await office.run('h1', 'clear');
  const template = { name: 'templates/clear', source: bmcTemplate('other') };
  await office.clients.templates.updateTemplate({ template });
  await office.report('h1', done);
  expect(await steps(office)).toEqual(['one succeeded', 'two running']);
  await office.report('h1', done);
  const after = await office.run('h1', 'clear');
  expect(after).toMatchObject({ state: SUCCEEDED, templateDigest: before?.templateDigest });
  const next = await office.again('h1', 'clear');
  expect(next.status?.run?.templateDigest).not.toBe(before?.templateDigest);
  expect(await steps(office)).toEqual(['other running']);
});

test('tinkerbell-L3: of a disabled workflow nothing starts before it is enabled', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  const made = await office.create('h1', 'clear', { disabled: true });
  expect(made.status?.run).toBeUndefined();
  const asked = await office.again('h1', 'clear');
  expect(asked.status?.run).toMatchObject({ state: PENDING, waiting: { reason: 'disabled' } });
  await office.pass(30 * minuteMs);
  expect((await office.run('h1', 'clear'))?.state).toBe(PENDING);
  expect(office.ordered('h1')).toEqual([]);
  const enabled = await office.update('h1', 'clear', { disabled: false }, 'spec.disabled');
  expect(enabled.status?.run).toMatchObject({ number: 1n, state: RUNNING });
});

test('a workflow that is disabled while it runs goes on; its next run waits', async () => {
  const office = await running('clear');
  await office.update('h1', 'clear', { disabled: true }, 'spec.disabled');
  await office.report('h1', done);
  expect((await office.run('h1', 'clear'))?.state).toBe(SUCCEEDED);
  const next = await office.again('h1', 'clear');
  expect(next.status?.run).toMatchObject({ number: 2n, state: PENDING });
});

test('tinkerbell-L5: a BMC that cannot be reached is tried again, and fails nothing', async () => {
  const office = await running('clear');
  await office.report('h1', silentBmc);
  const meanwhile = await office.run('h1', 'clear');
  expect(meanwhile).toMatchObject({ state: RUNNING });
  expect(meanwhile?.error).toBeUndefined();
  await office.pass(5 * minuteMs);
  expect(office.ordered('h1').length).toBeGreaterThan(1);
  await office.report('h1', done);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: SUCCEEDED });
});

test('a final refusal by a BMC ends the run at once, with its message', async () => {
  const office = await running('clear');
  await office.report('h1', failedWith('notApplied', 'the BMC keeps its log'));
  const run = await office.run('h1', 'clear');
  expect(run?.state).toBe(FAILED);
  expect(run?.error?.message).toContain('the BMC keeps its log');
  const told = await office.clients.workflows.explainWorkflow({
    name: 'hosts/h1/workflows/clear',
  });
  expect(told.headline).toMatch(/^run 1 failed .*at clear/);
  expect(told.unblock.join()).toContain('rackwright workflow run h1 clear');
});

test('tinkerbell-L7: a new control plane orders the same under the same id', async () => {
  const office = await running('clear');
  const first = office.last('h1');
  office.kill();
  const next = await Office.start(office.site, 'a');
  await next.hello();
  await next.pass(1_000);
  expect(next.ordered('h1').map(({ id }) => id)).toEqual([first.id]);
  await next.report('h1', done);
  expect(await next.run('h1', 'clear')).toMatchObject({ number: 1n, state: SUCCEEDED });
});

test('a report that is delivered again is answered, and counts once', async () => {
  const office = await running('one', 'two');
  const first = office.last('h1');
  await office.replica.report(first, done);
  await office.replica.report(first, done);
  await office.pass(1_000);
  expect(office.replica.verdicts()).toEqual([APPLIED, DUPLICATE]);
  expect(await steps(office)).toEqual(['one succeeded', 'two running']);
  expect(office.ordered('h1')).toHaveLength(2);
});

test('tinkerbell-L9: an interrupted step runs again if safe, a hand-off never', async () => {
  const office = await running('clear');
  const first = office.last('h1');
  await office.report('h1', failedWith('interrupted', 'the agent was started anew'));
  await office.pass(minuteMs);
  const second = office.last('h1');
  expect(second.id).not.toBe(first.id);
  await office.report('h1', done);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: SUCCEEDED });

  await office.template('kexec', scriptTemplate('kexec -e', 'handOff: true'));
  await office.create('h1', 'kexec');
  await bootRunner(office, 'h1');
  const handOff = office.last('h1');
  expect(handOff.kind.case === 'runStep' && handOff.kind.value.handOff).toBe(true);
  await office.report('h1', failedWith('interrupted', 'the agent was started anew'));
  await office.pass(10 * minuteMs);
  expect(office.last('h1').id).toBe(handOff.id);
  const held = await office.run('h1', 'kexec');
  expect(held).toMatchObject({ state: RUNNING, waiting: { reason: 'hold' } });
});

test('an agent that restarts between two steps repeats none of them', async () => {
  const office = await running('one', 'two');
  await office.report('h1', done);
  await office.hello([], 2n);
  await office.pass(minuteMs);
  await office.report('h1', done);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: SUCCEEDED });
  const places = office.ordered('h1').map(({ id }) => id.split('/')[2]);
  expect(places.filter((place) => place === places[0])).toHaveLength(1);
});

test('tinkerbell-L11: a run has succeeded once its host is where it was', async () => {
  const office = await Office.open();
  await office.template('hello', scriptTemplate('echo hello'));
  await office.create('h1', 'hello');
  await bootRunner(office, 'h1');
  await office.report('h1', done);
  expect(await office.run('h1', 'hello')).toMatchObject({ state: RUNNING });
  const { kind } = office.last('h1');
  expect(kind).toMatchObject({ case: 'setPower', value: { on: false } });
  await office.report('h1', done);
  expect(await office.run('h1', 'hello')).toMatchObject({ state: SUCCEEDED });
  expect(office.site.record('h1')?.host?.status?.poweredOn).not.toBe(true);
});

test('a report after a run has succeeded changes nothing', async () => {
  const office = await running('clear');
  const operation = office.last('h1');
  await office.report('h1', done);
  const before = await office.run('h1', 'clear');
  await office.replica.report(operation, failedWith('notApplied', 'after all not'));
  await office.pass(minuteMs);
  expect([DUPLICATE, STALE]).toContain(office.replica.verdicts().at(-1));
  expect(await office.run('h1', 'clear')).toEqual(before);
});

test('tinkerbell-L13: after a failed step nothing is done, the agent goes on', async () => {
  const office = await running('one', 'two');
  await office.report('h1', failedWith('notApplied', 'no'));
  expect(await steps(office)).toEqual(['one failed', 'two skipped']);
  expect(office.ordered('h1')).toHaveLength(1);
  const again = await office.again('h1', 'clear');
  expect(again.status?.run).toMatchObject({ number: 2n, state: RUNNING });

  const other = await Office.open();
  await other.template('hello', scriptTemplate('false'));
  await other.create('h1', 'hello');
  await bootRunner(other, 'h1');
  await other.report('h1', failedWith('exitCode', 'ended with exit code 1'));
  expect(await other.run('h1', 'hello')).toMatchObject({ state: FAILED });
  // Its boot was good for one runner: nothing lets it boot from the network again.
  const before = other.ordered('h1').length;
  await other.pass(31 * minuteMs);
  const later = other.ordered('h1').slice(before);
  expect(later.filter(({ kind }) => kind.case !== 'setPower' || kind.value.on !== false)).toEqual(
    [],
  );
});

test('a step that fails calls its handler, and the run then ends failed', async () => {
  const office = await Office.open();
  const source =
    'steps:\n  - { name: one, bmc: management.clear_event_log, onFailure: tidy }\n' +
    '  - { name: two, bmc: management.clear_event_log }\n' +
    'handlers:\n  - { name: tidy, bmc: management.clear_event_log }\n';
  await office.template('clear', source);
  await office.create('h1', 'clear');
  await office.report('h1', failedWith('notApplied', 'no'));
  expect(await steps(office)).toEqual(['one failed', 'two skipped', 'tidy running']);
  await office.report('h1', done);
  const run = await office.run('h1', 'clear');
  expect(run).toMatchObject({ state: FAILED });
  expect(run?.error?.message).toContain('no');
});

test('tinkerbell-L17: reports of nobody’s work are answered, the agent goes on', async () => {
  const office = await running('clear');
  const operation = office.last('h1');
  const strange = [
    { ...operation, id: 'u1/9/9/9' },
    { ...operation, id: '' },
    { ...operation, id: '', hostUid: '' },
    { ...operation, hostUid: 'u9' },
  ];
  for (const each of strange) {
    await office.replica.report(create(agent.OperationSchema, each), done);
  }
  await office.pass(1_000);
  const verdicts = office.replica.verdicts();
  expect(verdicts).toHaveLength(strange.length);
  for (const verdict of verdicts) expect([STALE, REFUSED]).toContain(verdict);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: RUNNING });
  await office.report('h1', done);
  expect(office.replica.verdicts().at(-1)).toBe(APPLIED);
  expect(await office.run('h1', 'clear')).toMatchObject({ state: SUCCEEDED });
});

test('tinkerbell-L19: a second start is refused, with the run that holds the host', async () => {
  const office = await running('clear');
  await office.template('other', bmcTemplate('other'));
  const busy = await refusal(office.create('h1', 'other'));
  expect(busy).toMatch(
    /^failedPrecondition: hosts\/h1: busy: workflow 1 holds the host .* since 2026/,
  );
  expect(busy).toContain('hosts/h1/workflows/clear/runs/1');
  expect(await refusal(office.again('h1', 'clear'))).toContain('hosts/h1/workflows/clear/runs/1');
  const { workflows } = await office.clients.workflows.listWorkflows({ parent: 'hosts/-' });
  expect(workflows.map(({ name }) => name)).toEqual(['hosts/h1/workflows/clear']);
});

const refusedAs = (refusal: string) => ({ error: { metadata: { refusal } } });

test('a run that is pending keeps others from being accepted, by its name', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  await office.create('h1', 'later');
  const refused = await refusal(office.create('h1', 'clear'));
  expect(refused).toMatch(/hosts\/h1\/workflows\/later\/runs\/1 is pending since 2026/);
  await expect(office.create('h1', 'clear')).rejects.toMatchObject(refusedAs('WORKFLOW_PENDING'));
  const name = 'hosts/h1/workflows/later';
  const cancelled = await office.clients.workflows.cancelWorkflow({ name, reason: 'no' });
  expect(cancelled.status?.run).toMatchObject({ state: CANCELLED });
  expect((await office.create('h1', 'clear')).status?.run).toMatchObject({ state: RUNNING });
});

test('a workflow runs again once its run has ended, under the next number', async () => {
  const office = await running('clear');
  await office.report('h1', done);
  for (let number = 2n; number <= 12n; number++) {
    const next = await office.again('h1', 'clear', `r${number}`);
    expect(next.status?.run).toMatchObject({ number, state: RUNNING });
    const repeated = await office.again('h1', 'clear', `r${number}`);
    expect(repeated.status?.run).toMatchObject({ number, state: RUNNING });
    await office.report('h1', done);
  }
  const parent = 'hosts/h1/workflows/clear';
  const { runs } = await office.clients.workflows.listWorkflowRuns({ parent });
  expect(runs.map(({ number }) => number)).toEqual(
    Array.from({ length: 10 }, (_, index) => BigInt(12 - index)),
  );
  expect(
    runs.every(({ state, run }) => state === SUCCEEDED && run?.kind === RunKind.WORKFLOW),
  ).toBe(true);
});

test('a run that the host refuses takes no earlier request out of memory', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('clear'));
  await office.create('h1', 'clear', { disabled: true });
  await office.update('h1', 'clear', { disabled: false }, 'spec.disabled');
  await office.again('h1', 'clear', 'r1');
  await office.report('h1', done);
  const source = bmcTemplate('clear').replace('clear_event_log', 'set_clock');
  await office.clients.templates.updateTemplate({ template: { name: 'templates/clear', source } });
  await expect(office.again('h1', 'clear')).rejects.toMatchObject({
    ...refusedAs('NOT_NOW'),
    message: expect.stringContaining('set_clock'),
  });
  const repeated = await office.again('h1', 'clear', 'r1');
  expect(repeated.status).toMatchObject({ runCount: 2n, run: { number: 1n, state: SUCCEEDED } });
});

test('a run that the host refuses costs none of those that are kept', async () => {
  const office = await running('clear');
  await office.report('h1', done);
  for (let number = 2; number <= 10; number++) {
    await office.again('h1', 'clear');
    await office.report('h1', done);
  }
  const source = bmcTemplate('clear').replace('clear_event_log', 'set_clock');
  await office.clients.templates.updateTemplate({ template: { name: 'templates/clear', source } });
  expect(await refusal(office.again('h1', 'clear'))).toMatch(/^failedPrecondition/);
  await office.pass(20 * minuteMs);
  const name = 'hosts/h1/workflows/clear/runs/1';
  const oldest = await office.clients.workflows.getWorkflowRun({ name });
  expect(oldest.run?.steps).toHaveLength(1);
});

test('a template with workflows is deleted only with their runs kept, which continue', async () => {
  const office = await running('one', 'two');
  const name = 'templates/clear';
  const refused = await refusal(office.clients.templates.deleteTemplate({ name }));
  expect(refused).toContain('hosts/h1/workflows/clear');
  await office.clients.templates.deleteTemplate({ name, keepRuns: true });
  await office.report('h1', done);
  await office.report('h1', done);
  const workflow = await office.clients.workflows.getWorkflow({
    name: 'hosts/h1/workflows/clear',
  });
  expect(workflow.status?.run).toMatchObject({ state: SUCCEEDED });
  expect(workflow.status?.notRunnable).toBe('templates/clear does not exist');
});

test('tinkerbell-L25: a host that others write makes a start wait, not fail', async () => {
  let rivals = 0;
  const office = await Office.open(1, async ({ kind, key }) => {
    if (kind === 'put' && key === 'hosts.h1' && rivals > 0) {
      rivals -= 1;
      const record = office.site.record('h1');
      if (record?.host === undefined) throw new Error('h1 is gone');
      record.host.labels = { rival: String(rivals) };
      await office.site.putRecord('h1', record);
    }
    return { kind: 'none' };
  });
  await office.template('clear', bmcTemplate('clear'));
  rivals = 3;
  expect((await office.create('h1', 'clear')).status?.run).toMatchObject({ state: RUNNING });
  await office.report('h1', done);
  rivals = 1_000;
  const kept = await office.again('h1', 'clear');
  expect(kept.status?.run).toMatchObject({ number: 2n, state: PENDING });
  rivals = 0;
  await office.pass(minuteMs);
  expect(await office.run('h1', 'clear')).toMatchObject({ number: 2n, state: RUNNING });
});

test('one of two control planes that see the same workflow starts its run', async () => {
  const office = await Office.open();
  const other = await Office.start(office.site, 'b');
  await office.create('h1', 'clear');
  await other.template('clear', bmcTemplate('clear'));
  await office.pass(minuteMs);
  expect(await other.run('h1', 'clear')).toMatchObject({ number: 1n, state: RUNNING });
  expect(office.site.record('h1')?.runCount).toBe(1n);
  expect(office.ordered('h1')).toHaveLength(1);
  expect(other.ordered('h1')).toEqual([]);
});

test('a start whose answer was lost in a crash starts nothing a second time', async () => {
  let dead = false;
  const seen: { site?: Site } = {};
  const office = await Office.open(1, ({ kind, key }) => {
    const isStarted = seen.site?.record('h1')?.runCount === 1n;
    dead ||= kind === 'put' && key === 'workflows.h1.clear' && isStarted;
    return { kind: dead ? 'requestLost' : 'none' };
  });
  seen.site = office.site;
  await office.template('clear', bmcTemplate('clear'));
  await refusal(office.create('h1', 'clear'));
  expect(dead).toBe(true);
  office.kill();
  const next = await Office.start(office.site, 'a');
  await next.hello();
  await next.pass(1_000);
  expect(await next.run('h1', 'clear')).toMatchObject({ number: 1n, state: RUNNING });
  await next.report('h1', done);
  expect(await next.run('h1', 'clear')).toMatchObject({ number: 1n, state: SUCCEEDED });
  await next.pass(10 * minuteMs);
  expect(next.site.record('h1')?.runCount).toBe(1n);
});
