import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { OciError } from '@rackwright/oci';
import type { Complete } from '@rackwright/results';
import { expect, test } from 'vitest';
import type { Images, PinnedImage, WantedImage } from '../images/index.ts';
import type { OperationContext, Progress } from '../session/index.ts';
import { resultOfOci, withImage } from './command-image.ts';

const done: Complete = { kind: 'complete' };
const reference = `registry.example.org/tools/x@sha256:${'a'.repeat(64)}`;
const image = create(agent.CommandImageSchema, {
  reference,
  credential: 'credentials/pull',
  credentialVersion: 3n,
});

type Fetch = (wanted: WantedImage, signal: AbortSignal) => Promise<PinnedImage>;

function setUp(fetch: Fetch, remainingMs = 60_000) {
  const told: Progress[] = [];
  const calls: string[] = [];
  const timers: (() => void)[] = [];
  const stop = new AbortController();
  const context: OperationContext = {
    signal: stop.signal,
    begin: async () => {},
    reportProgress: (progress) => told.push(progress),
    credential: async (name, version) => {
      calls.push(`credential ${name} ${version}`);
      return { name, version, username: 'robot', password: 'imitated' };
    },
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => remainingMs,
    openGrant: () => Promise.reject(new Error('no grant')),
    closeGrants: async () => {},
  };
  const images: Pick<Images, 'fetch'> = {
    fetch: async (wanted, signal, progress) => {
      calls.push(`fetch as ${wanted.credential?.username}`);
      const pinned = await fetch(wanted, signal);
      progress(1_500_000, 3_000_000);
      return pinned;
    },
  };
  const clock = {
    nowMs: () => 0,
    suspendAwareMs: () => 0,
    after: (_: number, callback: () => void) => {
      timers.push(callback);
      return () => {};
    },
  };
  const run = () =>
    withImage({ images, clock }, image, 'run.command', context, async () => {
      calls.push('order');
      return done;
    });
  const release = (): void => void calls.push('release');
  return { calls, context, release, run, stop, timers, told };
}

test('a command is ordered only when its image is here; the image stays to its end', async () => {
  const { calls, run, told } = setUp(async () => ({ release: () => calls.push('release') }));
  expect(await run()).toBe(done);
  const fetched = ['credential credentials/pull 3', 'fetch as robot'];
  expect(calls).toEqual([...fetched, 'order', 'release']);
  expect(told.at(-1)).toEqual({
    step: 'run.command',
    percent: 50,
    text: 'fetches the image: 1.5 of 3.0 MB',
  });
});

test('the image is released when the order cannot be carried out', async () => {
  const { calls, context } = setUp(async () => ({ release: () => {} }));
  const images = { fetch: async () => ({ release: () => calls.push('release') }) };
  const clock = { nowMs: () => 0, suspendAwareMs: () => 0, after: () => () => {} };
  const ran = withImage({ images, clock }, image, 'run.command', context, () =>
    Promise.reject(new Error('no lease')),
  );
  await expect(ran).rejects.toThrow('no lease');
  expect(calls).toContain('release');
});

test.each([
  ['unreachable', 'transientError'],
  ['tooMany', 'transientError'],
  ['noSpace', 'transientError'],
  ['unauthorized', 'failed'],
  ['untrusted', 'failed'],
  ['notFound', 'failed'],
  ['noPlatform', 'failed'],
  ['digestMismatch', 'failed'],
  ['truncated', 'failed'],
  ['tooLarge', 'failed'],
  ['malformed', 'failed'],
] as const)('the fetch error %s ends the step as %s, with its own text', async (kind, result) => {
  const { calls, run } = setUp(() => Promise.reject(new OciError(kind, 'the words')));
  const ended = await run();
  expect(ended).toMatchObject({
    kind: result,
    message: expect.stringMatching(/^the words/),
    ...(result === 'failed' ? { type: 'imageUnusable' } : { cause: 'registry' }),
  });
  expect(calls).not.toContain('order');
  expect(resultOfOci(new OciError(kind, 'the words'))).toEqual(ended);
});

const untilAborted: Fetch = (_, signal) =>
  new Promise((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new OciError('cancelled', 'given up')));
  });

test('the operation can be cancelled, or time out, while its image is fetched', async () => {
  const cancelled = setUp(untilAborted);
  const ended = cancelled.run();
  await Promise.resolve();
  cancelled.stop.abort();
  expect(await ended).toMatchObject({ kind: 'failed', type: 'cancelled' });
  const late = setUp(untilAborted);
  const over = late.run();
  for (let turn = 0; turn < 10 && late.timers.length === 0; turn += 1) await Promise.resolve();
  late.timers[0]?.();
  expect(await over).toMatchObject({ kind: 'failed', type: 'deadline' });
});

test('the operation is unsupported if no images are kept', async () => {
  const { context } = setUp(untilAborted);
  const ended = await withImage(undefined, image, 'run.command', context, async () => done);
  expect(ended).toMatchObject({ kind: 'failed', type: 'unsupported' });
});
