import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { digestOfHex, OciError } from '@rackwright/oci';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { TestClock } from '../session/testing/clock.ts';
import type { HostImages, WantedHostImage } from './host-images.ts';
import { Prefetcher } from './prefetcher.ts';

const reference = (byte: string): string => `registry.example.org/os@sha256:${byte.repeat(64)}`;
const listed = (byte: string) =>
  create(agent.PrefetchImageSchema, {
    ...{ image: { reference: reference(byte) }, architecture: 'amd64' },
  });
const list = (...bytes: string[]) => ({ images: bytes.map(listed) });

function setUp() {
  const time = new TestClock();
  const { clock } = time.open();
  const fetched: string[] = [];
  const told: agent.ImagePrefetched[] = [];
  const preferred: string[][] = [];
  const world = { failing: new Set<string>(), underWay: 0, atOnce: 0, plainly: [] as boolean[] };
  const cache = { gone: new Set<string>(), roomBytes: 100 };
  const prefetch: HostImages['prefetch'] = async ({ from }: WantedHostImage, signal, tell) => {
    const name = from.kind === 'registry' ? from.reference : from.url;
    world.underWay += 1;
    world.plainly.push(from.kind === 'registry' && from.plainHttp);
    world.atOnce = Math.max(world.atOnce, world.underWay);
    try {
      for (let part = 1; part <= 10; part += 1) {
        await time.sleep(500);
        if (signal.aborted) throw new OciError('cancelled', 'given up');
        tell({ phase: 'fetching', fetchedBytes: part, allBytes: 10 });
      }
    } finally {
      world.underWay -= 1;
    }
    if (world.failing.has(name)) throw new OciError('notFound', 'nobody has it');
    fetched.push(name);
    return [digestOfHex(name.slice(-64))];
  };
  const images = new Prefetcher({
    ...{ clock, log: quietLog, credential: async () => undefined },
    images: {
      ...{ prefetch, prefer: (digests) => void preferred.push([...digests]) },
      isHere: (digests) => digests.every((digest) => !cache.gone.has(digest)),
      hasRoom: (bytes) => bytes <= cache.roomBytes,
    },
    report: (image) => void told.push(image),
  });
  return { cache, fetched, images, preferred, time, told, world };
}

test('images are fetched one by one, reported at intervals, and kept once here', async () => {
  const { fetched, images, preferred, time, told, world } = setUp();
  images.replace(list('1', '2'));
  await time.run(11_000);
  expect(fetched).toEqual([reference('1'), reference('2')]);
  expect(world.atOnce).toBe(1);
  const first = told.filter((each) => each.reference === reference('1'));
  expect(first.map(({ fetchedBytes, done }) => [Number(fetchedBytes), done])).toEqual([
    [1, false],
    [5, false],
    [9, false],
    [10, true],
  ]);
  expect(preferred.at(-1)).toEqual(['1', '2'].map((byte) => `sha256:${byte.repeat(64)}`));
});

test('an image that cannot be fetched is tried again; others are fetched meanwhile', async () => {
  const { fetched, images, time, told, world } = setUp();
  world.failing.add(reference('1'));
  images.replace(list('1', '2'));
  await time.run(11_000);
  expect(fetched).toEqual([reference('2')]);
  const problems = told.filter(({ problem }) => problem !== '');
  expect(problems).toMatchObject([{ reference: reference('1'), problem: 'nobody has it' }]);
  world.failing.clear();
  await time.run(70_000);
  expect(fetched).toEqual([reference('2'), reference('1')]);
  expect(told.at(-1)).toMatchObject({ reference: reference('1'), done: true, problem: '' });
});

test('the same list again does not restart a fetch; the last list says how to ask', async () => {
  const { fetched, images, time, world } = setUp();
  images.replace(list('1'));
  await time.run(3_000);
  images.replace(list('1'));
  await time.run(2_100);
  expect(fetched).toEqual([reference('1')]);
  world.failing.add(reference('2'));
  images.replace(list('2'));
  await time.run(6_000);
  world.failing.clear();
  const { images: newer } = list('2');
  for (const { image } of newer) if (image !== undefined) image.plainHttp = true;
  images.replace({ images: newer });
  await time.run(6_000);
  expect(fetched).toEqual([reference('1'), reference('2')]);
  expect(world.plainly).toEqual([false, false, true]);
});

test('an image that was dropped for lack of room is fetched again when there is room', async () => {
  const { cache, fetched, images, time, told } = setUp();
  images.replace(list('1', '2'));
  await time.run(11_000);
  told.splice(0);
  cache.gone.add(`sha256:${'1'.repeat(64)}`);
  cache.roomBytes = 9;
  await time.run(200_000);
  expect(fetched).toHaveLength(2);
  expect(told).toMatchObject([
    { reference: reference('1'), done: false, problem: expect.stringContaining('make room') },
  ]);
  cache.roomBytes = 10;
  await time.run(61_000);
  cache.gone.clear();
  await time.run(6_000);
  expect(fetched).toEqual([reference('1'), reference('2'), reference('1')]);
  expect(told.at(-1)).toMatchObject({ reference: reference('1'), done: true, problem: '' });
  await time.run(200_000);
  expect(fetched).toHaveLength(3);
});

test('the fetch of an image that leaves the list ends; no image is fetched twice', async () => {
  const { fetched, images, preferred, time, told, world } = setUp();
  images.replace(list('1', '2'));
  await time.run(6_000);
  images.replace(list('1', '3'));
  await time.run(20_000);
  expect(fetched).toEqual([reference('1'), reference('3')]);
  expect(world.underWay).toBe(0);
  expect(preferred.at(-1)).toEqual(['1', '3'].map((byte) => `sha256:${byte.repeat(64)}`));
  told.splice(0);
  images.sessionOpened();
  expect(told.map((each) => [each.reference, each.done])).toEqual([
    [reference('1'), true],
    [reference('3'), true],
  ]);
  images.stop();
  expect(preferred.at(-1)).toEqual([]);
});
