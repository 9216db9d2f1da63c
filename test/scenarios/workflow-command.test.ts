/** The command on workflows and batches, over the services that operators reach. */
import { create } from '@bufbuild/protobuf';
import { startFixture } from '@rackwright/controlplane/testing';
import { agent } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bmcTemplate, bootRunner, done, failedWith, Office, scriptTemplate } from './office.ts';

test('a workflow lives and goes by commands', async () => {
  const office = await Office.open();
  await office.template('clear', bmcTemplate('one', 'two'));
  expect(await office.type('workflow create h1 none --disabled')).toMatchObject({ code: 0 });
  const missing = await office.type('workflow explain h1 none');
  expect(missing.output).toContain('rackwright template create none FILE');
  expect(missing.output).not.toContain('workflow run');
  const made = await office.type('workflow create h1 clear --disabled');
  expect(made).toMatchObject({ code: 0 });
  expect(made.output).toMatch(/disabled +yes/);
  const pending = await office.type('workflow run h1 clear');
  expect(pending.output).toMatch(/waits for +disabled: /);
  const explained = await office.type('workflow explain h1 clear');
  expect(explained.output).toContain('rackwright workflow enable h1 clear');
  const enabled = await office.type('workflow enable h1 clear');
  expect(enabled.output).toMatch(/state +running/);
  expect(enabled.output).toMatch(/one +running +1/);
  expect((await office.type('workflow run h1 clear')).code).toBe(1);
  const list = await office.type('workflow list --host h1');
  expect(list.output).toMatch(/hosts\/h1\/workflows\/clear +1 +running +1\/2 one/);
  expect((await office.type('workflow delete h1 clear')).output).toContain('is running');
  await office.report('h1', failedWith('notApplied', 'the BMC keeps its log'));
  const ended = await office.type('workflow get h1 clear');
  expect(ended.output).toMatch(/error +notApplied: .*the BMC keeps its log/);
  expect((await office.type('workflow update h1 clear --pending-timeout 2h')).code).toBe(0);
  expect((await office.type('workflow run h1 clear')).code).toBe(0);
  const runs = await office.type('workflow runs h1 clear');
  expect(runs.output).toMatch(/2 +running.*\n1 +failed/s);
  const cancelled = await office.type('workflow cancel h1 clear --reason wrong');
  expect(cancelled.code).toBe(0);
  await office.replica.report(office.ordered('h1')[1] ?? office.last('h1'), cancelledResult);
  await office.pass(1_000);
  expect((await office.type('workflow get h1 clear --run 2')).output).toMatch(/state +cancelled/);
  const gone = await office.type('workflow delete h1 clear');
  expect(gone.output).toBe('hosts/h1/workflows/clear deleted\n');
  expect((await office.type('workflow get h1 clear')).code).toBe(3);
});

const cancelledResult = failedWith('cancelled', 'told to stop');

test('the output of a step is printed with its exit, and does no harm to a terminal', async () => {
  const office = await Office.open();
  await office.template('hello', scriptTemplate('echo hello'));
  await office.create('h1', 'hello');
  await bootRunner(office, 'h1');
  const tail = new TextEncoder().encode('hello\n\u001b[31mred\n');
  const exit = { code: 0, outputBytes: BigInt(tail.length) };
  const value = create(agent.CompleteSchema, { output: { exit, tail } });
  await office.report('h1', { case: 'complete', value });
  await office.report('h1', done);
  // Streams need a connection: the same store behind a control plane on loopback.
  const fixture = await startFixture();
  try {
    for (const { key, value } of (await office.replica.store.list('')).entries) {
      await fixture.store.put(key, value, 'absent');
    }
    const logs = await office.type('workflow logs h1 hello --step it', fixture);
    expect(logs).toEqual({ code: 0, output: 'hello\n\ufffd[31mred\nit: exit 0\n' });
  } finally {
    await fixture.stop();
  }
});

test('a batch is shown before it is made, and told host by host', async () => {
  const office = await Office.open(3);
  await office.template('clear', bmcTemplate('clear'));
  const dry = await office.type('workflow batch create b1 clear --rack r1 --dry-run');
  expect(dry.output).toMatch(/hosts +3 pending/);
  expect((await office.type('workflow batch get b1')).code).toBe(3);
  const made = await office.type(
    'workflow batch create b1 clear --host h1 --host h2 --parallel 2 --max-failures 0',
  );
  expect(made.output).toMatch(/failures at most +any number/);
  expect(made.output).toMatch(/hosts\/h2 +running +hosts\/h2\/workflows\/clear\/runs\/1/);
  await office.report('h1', done);
  await office.report('h2', failedWith('notApplied', 'no'));
  const list = await office.type('workflow batch list');
  expect(list.output).toMatch(/workflowBatches\/b1 +templates\/clear +1 succeeded, 1 failed/);
  expect((await office.type('workflow batch cancel b1')).code).toBe(0);
  expect((await office.type('workflow batch delete b1')).output).toContain('b1 deleted');
});
