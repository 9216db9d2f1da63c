import { create } from '@bufbuild/protobuf';
import { agent, asRunNumber, deploymentIdOf, fetchImageStep } from '@rackwright/messages';
import { type DiskImage, digestOfHex, OciError } from '@rackwright/oci';
import { expect, test } from 'vitest';
import { DetachedFetches, type HostImages } from '../images/index.ts';
import type { OperationContext } from '../session/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { ownSteps } from './own-steps.ts';

const digest = digestOfHex('cd'.repeat(32));
const reference = `registry.example.org/os@${digest}`;
const blob = { mediaType: 'x', digest, sizeBytes: 5 };

/** The step as the agent takes it; `whole` ends how the image's way into the cache ends. */
function fetching(
  netboot: boolean,
  kernelArguments = '',
  name: string = fetchImageStep,
  declared: Partial<DiskImage> = {},
  writeAsFetched = false,
) {
  const whole = Promise.withResolvers<void>();
  whole.promise.catch(() => {});
  const told: string[] = [];
  const asked: string[] = [];
  let tellMore = (): void => {};
  const begin: HostImages['begin'] = async (host, { needs }, signal, tell) => {
    asked.push(`${host} ${needs}`);
    tellMore = () => tell({ phase: 'fetching', fetchedBytes: 1_500_000, allBytes: 3_000_000 });
    tellMore();
    signal.addEventListener('abort', () => whole.reject(new OciError('cancelled', 'given up')));
    const disk = { blob, format: 'raw', architecture: 'amd64', ...declared } as const;
    const set = { kernel: blob, initrds: [], kernelArguments };
    const image = { version: '', ...(netboot ? { netboot: set } : { disk }) };
    const release = () => void asked.push('released');
    const isWhole = async (): Promise<boolean> => true;
    const acts = { giveBackSlot: () => {}, isWhole, doubt: () => {}, release };
    const anew = new AbortController().signal;
    return { image, digests: [], whole: whole.promise, restarted: anew, ...acts };
  };
  const pin: HostImages['pin'] = async (...all) => {
    const coming = await begin(...all);
    await whole.promise;
    return coming;
  };
  const time = new TestClock();
  const { clock } = time.open();
  const carriedOn = new DetachedFetches();
  const phoneHomePath = (id: string) => `/phone-home/${id}`;
  const parts = {
    images: { pin, begin },
    carriedOn,
    clock,
    architecture: 'amd64',
    phoneHomePath,
  } as const;
  const step = ownSteps({ hostImages: parts }).get(name);
  if (step === undefined) throw new Error('the agent has no such step');
  const deployment = {
    id: deploymentIdOf('u1', asRunNumber(3)),
    image: { reference },
    deploy: { netboot },
    writeAsFetched,
  };
  const request = create(agent.RunStepSchema, { step: name, deployment });
  const context: OperationContext = {
    signal: new AbortController().signal,
    begin: async () => {},
    reportProgress: ({ text }) => void told.push(text ?? ''),
    credential: () => Promise.reject(new Error('none is needed')),
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => 60_000 - clock.suspendAwareMs(),
    openGrant: () => Promise.reject(new Error('no boot is opened')),
    closeGrants: async () => {},
  };
  const operation = create(agent.OperationSchema, { id: 'u1/3/0/1', hostUid: 'u1' });
  let isOver = false;
  const result = step.run(operation, request, context).finally(() => {
    isOver = true;
  });
  const rig = { asked, carriedOn, time, told, whole, result };
  return { ...rig, tellMore: () => tellMore(), isOver: () => isOver };
}

test.each<[string | undefined, Partial<DiskImage>]>([
  [undefined, { compression: 'none', contentBytes: 5, contentDigest: digest }],
  [undefined, { compression: 'zstd', contentBytes: 6 }],
  [undefined, { contentBytes: 6 }],
  ['badImage', { compression: 'none', contentBytes: 6 }],
  ['badImage', { compression: 'none', contentDigest: digestOfHex('ef'.repeat(32)) }],
])('a raw image must be what it declares: %s of %j', async (type, declared) => {
  const { whole, result } = fetching(false, '', fetchImageStep, declared);
  whole.resolve();
  expect(await result).toMatchObject(type === undefined ? { kind: 'complete' } : { type });
});

test.each([
  [fetchImageStep, false, 'u1 disk'],
  [fetchImageStep, true, 'u1 netboot'],
])('%s ends once all of the image is proved, netboot %s', async (name, netboot, needs) => {
  const { asked, told, whole, result, isOver } = fetching(netboot, '', name);
  await expect.poll(() => told).toEqual(['fetches the image: 1.5 of 3.0 MB']);
  expect([isOver(), asked]).toEqual([false, [needs]]);
  whole.resolve();
  expect(await result).toEqual({ kind: 'complete' });
  expect(asked).toEqual([needs, 'released']);
});

test('an image that proves wrong at its end is reported in place of success', async () => {
  const { asked, whole, result } = fetching(false);
  whole.reject(new OciError('digestMismatch', 'other bytes came'));
  expect(await result).toMatchObject({ kind: 'failed', type: 'imageDigestMismatch' });
  expect(asked).toEqual(['u1 disk']);
});

test('a kernel that could not be booted is told before any host is switched off', async () => {
  const { whole, result } = fetching(true, 'quiet ; poweroff');
  whole.resolve();
  expect(await result).toMatchObject({ kind: 'failed', type: 'badImage' });
});

const key = {
  hostUid: 'u1',
  deploymentId: deploymentIdOf('u1', asRunNumber(3)),
  architecture: 'amd64',
} as const;

test('the fetch step of a host without an image ends once the image begins to come', async () => {
  const rig = fetching(false, '', fetchImageStep, {}, true);
  const { asked, carriedOn, result, told, tellMore } = rig;
  expect(await result).toEqual({ kind: 'complete' });
  expect([asked, told.length]).toEqual([['u1 disk'], 1]);
  // Its operation is over: nothing is reported any more.
  tellMore();
  expect(told).toHaveLength(1);
  expect(
    carriedOn.take({ ...key, deploymentId: deploymentIdOf('u1', asRunNumber(4)) }),
  ).toBeUndefined();
  expect(asked).toEqual(['u1 disk', 'released']);
});

test.each<[string, (rig: ReturnType<typeof fetching>) => void]>([
  ['it is whole', ({ whole }) => whole.resolve()],
  ['it cannot be had', ({ whole }) => whole.reject(new OciError('notFound', 'it is gone'))],
  ['its time is over', ({ time }) => void time.run(60_001)],
])('an image that is still being fetched is released once %s', async (_, end) => {
  const rig = fetching(false, '', fetchImageStep, {}, true);
  const { asked, carriedOn, result } = rig;
  expect(await result).toEqual({ kind: 'complete' });
  end(rig);
  await expect.poll(() => asked).toEqual(['u1 disk', 'released']);
  expect(carriedOn.take(key)).toBeUndefined();
});

test('the step waits for the whole kernel, whatever is said of the disks', async () => {
  const { whole, result, isOver } = fetching(true, '', fetchImageStep, {}, true);
  await new Promise(setImmediate);
  expect(isOver()).toBe(false);
  whole.resolve();
  expect(await result).toEqual({ kind: 'complete' });
});

test('an image that declares itself wrongly fails the step, fetched or not', async () => {
  const declared = { compression: 'none', contentBytes: 6 } as const;
  const { asked, result } = fetching(false, '', fetchImageStep, declared, true);
  expect(await result).toMatchObject({ type: 'badImage' });
  expect(asked).toEqual(['u1 disk', 'released']);
});
