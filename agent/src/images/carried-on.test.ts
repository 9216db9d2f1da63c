import { asRunNumber, deploymentIdOf } from '@rackwright/messages';
import { digestOfHex, OciError } from '@rackwright/oci';
import { expect, test } from 'vitest';
import { DetachedFetches } from './carried-on.ts';
import type { ComingHostImage } from './host-images.ts';

const deploymentId = deploymentIdOf('u1', asRunNumber(3));
const key = { hostUid: 'u1', deploymentId, architecture: 'amd64' } as const;
const blob = { mediaType: 'x', digest: digestOfHex('cd'.repeat(32)), sizeBytes: 5 };
const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

function setUp() {
  const carriedOn = new DetachedFetches();
  const happened: string[] = [];
  const carry = (name: string) => {
    const whole = Promise.withResolvers<void>();
    const [anew, late] = [new AbortController(), new AbortController()];
    const coming: ComingHostImage = {
      image: { version: '', disk: { blob, architecture: 'amd64' } },
      ...{ digests: [], giveBackSlot: () => {}, isWhole: async () => true, doubt: () => {} },
      ...{ whole: whole.promise, restarted: anew.signal },
      release: () => void happened.push(`${name} released`),
    };
    const end = (): void => void happened.push(`${name} watched no more`);
    carriedOn.carry(key, coming, { signal: late.signal, end });
    return { anew, coming, late, whole };
  };
  return { carriedOn, carry, happened };
}

test('an image that is handed on belongs to its new holder, however it ends', async () => {
  const { carriedOn, carry, happened } = setUp();
  const { coming, whole } = carry('one');
  expect(carriedOn.take(key)).toBe(coming);
  expect(carriedOn.take(key)).toBeUndefined();
  whole.reject(new OciError('notFound', 'it is gone'));
  await soon();
  expect(happened).toEqual(['one watched no more']);
});

test('a host hands on at most one image; an earlier one does not end the next', async () => {
  const { carriedOn, carry, happened } = setUp();
  const before = carry('before');
  const next = carry('next');
  expect(happened).toEqual(['before watched no more', 'before released']);
  before.whole.resolve();
  await soon();
  expect(carriedOn.take(key)).toBe(next.coming);
});

test.each<[string, Partial<typeof key | { architecture: 'arm64' }>]>([
  ['another deployment', { deploymentId: deploymentIdOf('u1', asRunNumber(4)) }],
  ['another kind of machine', { architecture: 'arm64' }],
])('%s does not get the image, which is then released', (_, change) => {
  const { carriedOn, carry, happened } = setUp();
  carry('one');
  expect(carriedOn.take({ ...key, ...change })).toBeUndefined();
  expect(happened).toContain('one released');
});

test('an image that is discarded or late is not handed on', async () => {
  const { carriedOn, carry, happened } = setUp();
  carry('one').anew.abort();
  expect(carriedOn.take(key)).toBeUndefined();
  carry('two').late.abort();
  await soon();
  expect(carriedOn.take(key)).toBeUndefined();
  expect(happened.filter((each) => each.endsWith('released'))).toHaveLength(2);
});
