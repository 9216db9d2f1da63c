/** What keeps a workflow from being started on a host, said by the name of the step. */
import { create } from '@bufbuild/protobuf';
import { FleetSpecSchema, HostState } from '@rackwright/api';
import { expect, test } from 'vitest';
import { refusalOf } from './testing/deleting.ts';
import { rendered, script, startOn, workable, workflowRun } from './testing/templates.ts';

test('a second start is refused with the name of the run that holds the host', () => {
  const host = workable();
  startOn(host, [script('a')]);
  const templateDigest = 'd1';
  const text = refusalOf(host, {
    kind: 'workflow',
    workflowRun,
    templateDigest,
    steps: [script('a')],
    timeoutMs: undefined,
  });
  expect(text).toContain('busy: workflow 2 holds the host (at power.off)');
});

test('what the host or the fleet does not allow is refused by the name of the step', () => {
  const host = workable();
  const refusal = (...steps: Parameters<typeof startOn>[1]) =>
    refusalOf(host, {
      kind: 'workflow',
      workflowRun,
      templateDigest: 'd1',
      steps,
      timeoutMs: undefined,
    });
  expect(refusal(rendered('x', 'firmware.flash'))).toContain(
    'step x: the agent of racks/r1 offers no firmware.flash; it offers: management.clear_event_log',
  );
  const image = `registry.example.org/tools/check@sha256:${'0'.repeat(64)}`;
  const command = rendered('c', 'run.command', { arguments: { image } });
  expect(refusal(command)).toContain('allows no command from registry.example.org/tools/check');
  const call = (url: string) => rendered('w', 'webhook', { arguments: { url } });
  expect(refusal(call('https://hooks.example.org/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  allow(host);
  expect(refusal(command)).toContain('accepted');
  expect(refusal(call('https://hooks.example.org/x'))).toContain('accepted');
  expect(refusal(call('https://hooks.example.org.evil/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  expect(refusal(call('https://hooks.example.org@evil/x'))).toMatch(
    /step w: .*(allows no webhook|user)/,
  );
  expect(refusal(rendered('go', 'bootDisk'))).toContain('may hold data of its last use');
  expect(refusal(script('big', { arguments: { script: 'x'.repeat(100_000) } }))).toContain(
    'bytes; at most 98304 are run',
  );
  expect(refusal()).toContain('steps is empty');
});

function allow(host: ReturnType<typeof workable>): void {
  const templates = {
    imageRepositories: ['registry.example.org/tools/*'],
    plainHttpRegistries: [],
    webhookUrls: ['https://hooks.example.org/'],
  };
  host.context = { ...host.context, fleet: create(FleetSpecSchema, { templates }) };
}

test.each([
  [HostState.NEW, 'no workflow runs before its BMC is proved'],
  [HostState.EXTERNAL, 'no workflow runs on it'],
])('in state %s no workflow is started', (state, text) => {
  const host = workable(state);
  const asked = { kind: 'workflow', workflowRun, templateDigest: 'd1' } as const;
  const said = refusalOf(host, { ...asked, steps: [script('a')], timeoutMs: undefined });
  expect(said).toContain(text);
});

test('a disk that the template writes itself may be booted, others need a reason', () => {
  const asked = { kind: 'workflow', workflowRun, templateDigest: 'd1' } as const;
  const go = rendered('go', 'bootDisk');
  const steps = [script('write', { destructive: true }), go];
  expect(refusalOf(workable(), { ...asked, steps, timeoutMs: undefined })).toContain('accepted');
  const clean = workable(HostState.AVAILABLE);
  expect(refusalOf(clean, { ...asked, steps: [go], timeoutMs: undefined })).toContain('accepted');
});
