import { create } from '@bufbuild/protobuf';
import { agent, fetchImageStep, prepareNetbootStep } from '@rackwright/messages';
import { type DiskImage, digestOfHex, OciError } from '@rackwright/oci';
import { expect, test } from 'vitest';
import type { HostImages } from '../images/index.ts';
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
) {
  const whole = Promise.withResolvers<void>();
  whole.promise.catch(() => {});
  const told: string[] = [];
  const asked: string[] = [];
  const hold: HostImages['hold'] = async (host, { needs }, _signal, tell) => {
    asked.push(`${host} ${needs}`);
    tell({ phase: 'fetching', fetchedBytes: 1_500_000, allBytes: 3_000_000 });
    await whole.promise;
    const disk = { blob, format: 'raw', architecture: 'amd64', ...declared } as const;
    const set = { kernel: blob, initrds: [], kernelArguments };
    const image = { version: '', ...(netboot ? { netboot: set } : { disk }) };
    const release = () => void asked.push('released');
    const isWhole = async (): Promise<boolean> => true;
    return { image, digests: [], endTurn: () => {}, isWhole, doubt: () => {}, release };
  };
  const clock = new TestClock().open().clock;
  const phoneHomePath = (id: string) => `/phone-home/${id}`;
  const parts = { images: { hold }, clock, architecture: 'amd64', phoneHomePath } as const;
  const step = ownSteps({ hostImages: parts }).get(name);
  if (step === undefined) throw new Error('the agent has no such step');
  const deployment = { id: 'u1/3', image: { reference }, deploy: { netboot } };
  const request = create(agent.RunStepSchema, { step: name, deployment });
  const context: OperationContext = {
    signal: new AbortController().signal,
    begin: async () => {},
    continuing: ({ text }) => void told.push(text ?? ''),
    credential: () => Promise.reject(new Error('none is needed')),
    leaseValid: () => true,
    leaseLeftMs: () => 9_000,
    frozen: () => '',
    remainingMs: () => 60_000,
    openGrant: () => Promise.reject(new Error('no boot is opened')),
    closeGrants: async () => {},
  };
  const operation = create(agent.OperationSchema, { id: 'u1/3/0/1', hostUid: 'u1' });
  let isOver = false;
  const result = step.run(operation, request, context).finally(() => {
    isOver = true;
  });
  return { asked, told, whole, result, isOver: () => isOver };
}

test.each<[string | undefined, Partial<DiskImage>]>([
  [undefined, { compression: 'none', contentBytes: 5, contentDigest: digest }],
  [undefined, { compression: 'zstd', contentBytes: 6 }],
  [undefined, { contentBytes: 6 }],
  ['badImage', { compression: 'none', contentBytes: 6 }],
  ['badImage', { compression: 'none', contentDigest: digestOfHex('ef'.repeat(32)) }],
])('what a raw image says of itself must be so: %s of %j', async (type, declared) => {
  const { whole, result } = fetching(false, '', fetchImageStep, declared);
  whole.resolve();
  expect(await result).toMatchObject(type === undefined ? { kind: 'complete' } : { type });
});

test.each([
  [fetchImageStep, false, 'u1 disk'],
  [fetchImageStep, true, 'u1 netboot'],
  [prepareNetbootStep, true, 'u1 netboot'],
])('%s ends once all of the image is proved, netboot %s', async (name, netboot, needs) => {
  const { asked, told, whole, result, isOver } = fetching(netboot, '', name);
  await expect.poll(() => told).toEqual(['fetches the image: 1.5 of 3.0 MB']);
  expect([isOver(), asked]).toEqual([false, [needs]]);
  whole.resolve();
  expect(await result).toEqual({ kind: 'complete' });
  expect(asked).toEqual([needs, 'released']);
});

test('what turns out wrong at its end is told in place of success', async () => {
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
