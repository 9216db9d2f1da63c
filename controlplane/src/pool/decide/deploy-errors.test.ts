/**
 * From the agent's report of a failed deployment to the texts of host, explain and pool: each error
 * has a row, with the real messages of the step and the agent.
 */
import { readFileSync } from 'node:fs';
import { create, fromJson, type JsonValue, type MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  type FailureName,
  FailureType,
  failureTypeOf,
  HostGoal,
  HostState,
  type Run,
  TransientCause,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../../host/explain/explain.ts';
import { type Bench, bench, done, inspected, verified } from '../../host/testing/bench.ts';
import { seenHost } from '../facts/seen.ts';
import { failRun, failureOf, stepAt } from './failed-run.fixture.ts';

const first = `registry.example/os@sha256:${'1'.repeat(64)}`;
const second = `registry.example/os@sha256:${'2'.repeat(64)}`;

/** The messages of the step and the agent, as recorded by their own tests. */
const sent = new Map<string, agent.Failed>(
  ['packages/runner/src/deploy/write-image', 'agent/src/operations/untouched'].flatMap((name) => {
    const file = new URL(`../../../../${name}.ends.jsonl`, import.meta.url);
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    return lines.map((line): [string, agent.Failed] => {
      const [what, failed] = JSON.parse(line) as [string, JsonValue];
      return [what, fromJson(agent.FailedSchema, failed)];
    });
  }),
);

interface Row {
  readonly type: FailureName;
  readonly what: string;
  readonly untouched: boolean;
  readonly advice: string;
}

const rows: readonly Row[] = [
  lost('imageDigestMismatch', 'other bytes than the digest names', 'pushed anew'),
  lost('imageDigestMismatch', 'a file that ends too early', 'pushed anew'),
  lost('writeError', 'a disk that cannot be written to', 'replace it'),
  lost('writeError', 'a disk that forgets what is written', 'replace it'),
  refused('wrongArchitecture', 'another architecture', 'name another one'),
  refused('imageTooLarge', 'an image larger than the disk', '--root-disk min-size=SIZE'),
  refused('badImage', 'an image of another kind', 'name another one'),
  refused('keepDisk', 'a disk that is kept', '--root-disk serial=SERIAL'),
  refused('keepDisk', 'hints that fit a disk that is kept', '--root-disk serial=SERIAL'),
  refused('noRootDisk', 'hints that fit no disk', '--root-disk serial=SERIAL'),
  ofAgent('registryUnreachable', 'untrusted', 'answers the agent'),
  ofAgent('registryUnreachable', 'refused', 'fleet registry set registry.ex'),
  ofAgent('registryUnauthorized', 'unauthorized', 'fleet registry set registry.ex'),
  ofAgent('imageNotFound', 'notFound', 'see that registry.example has'),
  ofAgent('imageDigestMismatch', 'digestMismatch', 'pushed anew'),
  ofAgent('imageTruncated', 'truncated', 'pushed anew'),
  ofAgent('noSpace', 'noSpace', 'make room on the disk of the agent'),
  ofAgent('noSpace', 'tooLarge', 'make room on the disk of the agent'),
  ofAgent('wrongArchitecture', 'noPlatform', 'name another one'),
  ofAgent('badImage', 'malformed', 'name another one'),
];

function lost(type: FailureName, by: string, advice: string): Row {
  return { type, what: `the disk is lost by ${by}`, untouched: false, advice };
}

function refused(type: FailureName, by: string, advice: string): Row {
  return { type, what: `nothing is written for ${by}`, untouched: true, advice };
}

function ofAgent(type: FailureName, what: string, advice: string): Row {
  return { type, what, untouched: true, advice };
}

test.each(rows)(
  'host and pool keep the words of a $type: $what',
  ({ type, what, untouched, advice }) => {
    const failure = sent.get(what);
    if (failure === undefined) throw new Error(`nobody sends: ${what}`);
    const { message } = failure;
    const { host, run } = failedBy('deploy.write_image', failure);
    const { status } = host.record.host ?? {};
    expect(status?.faults[0]).toMatchObject({ type: 'reimageFailed' });
    expect(status?.faults[0]?.message).toContain(message);
    expect(status?.image).toBe(untouched ? first : '');
    expect(status?.state).toBe(HostState.PROVISIONED);
    expect(status?.lastError?.failure).toMatchObject({ type: failureTypeOf(type), message });
    expect(failureOf(host, run, second), 'until its power is as it was').toBeUndefined();
    while (host.record.operation?.operation !== undefined) host.report(done);
    expect(failureOf(host, run, second)).toMatchObject({ message, counted: !untouched });
    const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
    expect(JSON.stringify(told.causes.map(({ text }) => text))).toContain(message);
    expect(told.unblock.join('; ')).toContain(advice);
  },
);

test('garm-T8: a host whose architecture an image lacks stays in service, uncounted', () => {
  const failure = sent.get('noPlatform');
  if (failure === undefined) throw new Error('no agent says that');
  const host = reimagedTo('deploy.fetch_image');
  const run = failRun(host, failure);
  expect(run.error).toMatchObject({
    type: FailureType.WRONG_ARCHITECTURE,
    message: failure.message,
  });
  expect(seenHost(host.record)).toMatchObject({ image: first, illness: undefined, service: 'in' });
  expect(failureOf(host, run, second)).toMatchObject({ counted: false, message: failure.message });
});

test('the pool keeps why a host is notProved as the control plane says, not the name alone', () => {
  const host = reimagedTo('deploy.await_image');
  const number = host.record.host?.status?.run?.number;
  host.nowMs += 21 * 60_000;
  const { session } = host.snapshot;
  if (session === undefined) throw new Error('no session');
  host.snapshot = { ...host.snapshot, session: { ...session, lastMessageMs: host.nowMs } };
  host.apply({ kind: 'tick' });
  const { run } = host.record.host?.status ?? {};
  const ended = [run, ...host.record.finishedRuns].find((each) => each?.number === number);
  if (ended === undefined) throw new Error('the run is not kept');
  expect(ended.error?.message).toContain(`to run ${second}, and has not phoned home in 20 minutes`);
  const { message = '' } = failureOf(host, ended, second) ?? {};
  expect(message).toContain('to run its image, and has not phoned home in 20 minutes');
  expect(message).toContain('look at its console: whether it boots');
  expect(message).toMatch(/runs cloud-init to the end$/);
});

test('the pool keeps of a long message what is wrong, and a digest by its first digits', () => {
  const digest = 'c'.repeat(64);
  const at = `https://registry.example/v2/os/blobs/sha256:${digest}`;
  const message = `${second}: ${at} was answered by 401 although a user was given: `.padEnd(
    900,
    'x',
  );
  const { host, run } = failedBy('deploy.write_image', {
    type: FailureType.REGISTRY_UNAUTHORIZED,
    message,
  });
  while (host.record.operation?.operation !== undefined) host.report(done);
  const kept = failureOf(host, run, second)?.message ?? '';
  expect(kept).toMatch(/^its image: https:.*sha256:c{12}… was answered by 401 although a user/);
  expect(kept).toHaveLength(500);
});

test('a host that is notProved, and its pool, say why, and what is on the disk', () => {
  const { host, run } = failedBy('deploy.await_image', {
    type: FailureType.NOT_PROVED,
    message: 'late',
  });
  const { status } = host.record.host ?? {};
  expect(status?.faults[0]?.message).toContain(`to run ${second}, and has not phoned home in`);
  expect(status?.faults[0]?.message).toContain(`to the end; on the disk: the whole of ${second}`);
  expect(status?.image).toBe(second);
  expect(failureOf(host, run, second)).toMatchObject({ counted: true });
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.unblock[0]).toContain('look at the console of hosts/h1');
  expect(told.unblock.at(-1)).toContain(`rackwright host reimage h1 ${second}`);
});

test('a host that got status 429 waits for its Retry-After, and says so', () => {
  const host = reimagedTo('deploy.write_image');
  const value = create(agent.TransientErrorSchema, {
    cause: TransientCause.REGISTRY,
    message: 'registry.example says 429',
    delay: durationFromMs(120_000),
    disksUntouched: true,
  });
  host.report({ case: 'transientError', value });
  const { run } = host.record.host?.status ?? {};
  expect(run?.waiting).toMatchObject({ reason: 'registry', message: 'registry.example says 429' });
  expect(host.record.operation?.notBefore).toEqual(timestampFromMs(host.nowMs + 120_000));
  expect(host.record.operation?.sentTo).toBeUndefined();
  host.nowMs += 120_000;
  const sent = host.apply({ kind: 'tick' });
  expect(sent.map(({ kind }) => kind)).toContain('send');
  for (let minutes = 0; minutes < 40 && stepAt(host) === 'deploy.write_image'; minutes++) {
    host.report({ case: 'transientError', value });
    host.nowMs += 120_000;
    host.apply({ kind: 'tick' });
  }
  const { status } = host.record.host ?? {};
  expect(status?.faults[0]?.message).toContain('registry.example says 429');
  expect(status?.image).toBe(first);
});

/** A reimage whose step of this name fails with it. */
function failedBy(
  step: string,
  init: MessageInitShape<typeof agent.FailedSchema>,
): { host: Bench; run: Run } {
  const host = reimagedTo(step);
  const run = failRun(host, init);
  return { host, run };
}

/** A reimage as far as this step. */
function reimagedTo(step: string): Bench {
  const host = bench({ goal: HostGoal.MANAGEABLE });
  host.apply({ kind: 'tick' });
  host.report(verified());
  const { status } = host.record.host ?? {};
  Object.assign(status ?? {}, { state: HostState.PROVISIONED, image: first, poweredOn: true });
  host.request({ kind: 'claim', reason: 'mine' });
  host.request({ kind: 'reimage', image: second });
  while (stepAt(host) !== step) {
    if (stepAt(host) === 'runner.await') host.runnerReady();
    else host.report(stepAt(host) === 'runner.inspect' ? inspected() : done);
  }
  return host;
}
