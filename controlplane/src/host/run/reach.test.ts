/** The targets that the fleet permits to templates, checked again before each use. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  FleetSpecSchema,
  RunOutcome,
  RunPhase,
  type TemplatePolicySchema,
  TransientCause,
  userActor,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Bench, failed } from '../testing/bench.ts';
import { bootNow, rendered, runOf, startOn, stepNow, workable } from '../testing/templates.ts';

const image = `registry.example.org/tools/check@sha256:${'0'.repeat(64)}`;
const url = 'https://hooks.example.org/done';
const command = rendered('check', 'run.command', { arguments: { image }, retries: 1 });

type Policy = Exclude<MessageInitShape<typeof TemplatePolicySchema>, { $typeName: string }>;

const usual: Policy = {
  imageRepositories: ['registry.example.org/tools/*'],
  webhookUrls: ['https://hooks.example.org/'],
};

function allow(host: Bench, templates: Policy, versions: [string, bigint][] = []): void {
  host.snapshot = {
    ...host.snapshot,
    fleet: create(FleetSpecSchema, { templates }),
    registryCredentials: new Map(versions),
    replica: 'r1',
  };
}

function orderedImage(host: Bench): agent.CommandImage | undefined {
  const { kind } = host.operation();
  return kind.case === 'runStep' ? kind.value.image : undefined;
}

test('a command is ordered with its image, and the credential of its registry', () => {
  const host = workable();
  const registryCredentials = { 'registry.example.org': 'credentials/pull' };
  allow(host, { ...usual, registryCredentials }, [['credentials/pull', 7n]]);
  startOn(host, [command]);
  bootNow(host);
  expect(orderedImage(host)).toMatchObject({
    reference: image,
    credential: 'credentials/pull',
    credentialVersion: 7n,
    plainHttp: false,
  });
});

test('an image that is not let in any more is not ordered, whatever was when the run began', () => {
  const host = workable();
  allow(host, usual);
  startOn(host, [command]);
  allow(host, { imageRepositories: [] });
  bootNow(host);
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: {
      type: FailureType.NOT_ALLOWED,
      message: expect.stringContaining('allows no command from registry.example.org/tools/check'),
    },
  });
  expect(host.record.operation).toBeUndefined();
});

test('a credential that is gone is told before the agent is asked', () => {
  const host = workable();
  const registryCredentials = { 'registry.example.org': 'credentials/pull' };
  allow(host, { ...usual, registryCredentials });
  startOn(host, [command]);
  bootNow(host);
  expect(runOf(host).error?.message).toContain('rackwright credential create pull');
});

test('a failed attempt is asked for again only if it is let in still', () => {
  const host = workable();
  allow(host, usual);
  startOn(host, [command]);
  bootNow(host);
  expect(orderedImage(host)?.reference).toBe(image);
  allow(host, { imageRepositories: ['registry.example.org/other'] });
  host.report(failed('exitCode'));
  expect(runOf(host).error?.type).toBe(FailureType.NOT_ALLOWED);
});

test('a registry that is silent is waited for, with a fault that is not the BMC’s', () => {
  const host = workable();
  allow(host, usual);
  startOn(host, [command]);
  bootNow(host);
  const message = 'registry.example.org does not answer';
  const value = create(agent.TransientErrorSchema, { cause: TransientCause.REGISTRY, message });
  for (let count = 0; count < 5; count += 1) {
    host.report({ case: 'transientError', value });
    const at = host.record.operation?.notBefore;
    host.nowMs = at === undefined ? host.nowMs : Number(at.seconds) * 1_000 + 1_000;
    host.apply({ kind: 'tick' });
  }
  const { faults = [] } = host.record.host?.status ?? {};
  expect(faults.map(({ type }) => type)).toEqual(['registryUnreachable']);
  host.report({ case: 'transientError', value });
  expect(runOf(host).waiting).toMatchObject({ reason: 'registry', message: value.message });
  host.apply({ kind: 'request', request: { kind: 'abort', reason: 'x' }, by: person });
  expect(runOf(host).phase).toBe(RunPhase.ENDED);
  expect(host.record.host?.status?.faults).toEqual([]);
});

const person = { actor: userActor('admin'), requestId: '' };

test('a webhook is called again only if it is let in still', () => {
  const host = workable();
  allow(host, usual);
  startOn(host, [rendered('tell', 'webhook', { arguments: { url } })]);
  const { id = '' } = host.record.call ?? {};
  const message = 'https://hooks.example.org answered 503';
  host.apply({ kind: 'webhookResult', id, result: { kind: 'transientError', message } });
  expect(stepNow(host)?.name).toBe('webhook');
  allow(host, { webhookUrls: ['https://hooks.example.org/other/'] });
  const effects = host.apply({ kind: 'tick' });
  expect(effects.filter(({ kind }) => kind === 'callWebhook')).toEqual([]);
  expect(runOf(host)).toMatchObject({
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.NOT_ALLOWED },
  });
});
