import { create } from '@bufbuild/protobuf';
import { agent, asRunNumber, deploymentIdOf } from '@rackwright/messages';
import { digestOfHex, OciError } from '@rackwright/oci';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import type { HostImages, WantedHostImage } from '../images/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { NetbootImages } from './netboot-images.ts';

const reference = (byte: string): string => `registry.example.org/net@sha256:${byte.repeat(64)}`;
const deployment = (host: string, byte: string) =>
  create(agent.DeploymentSchema, {
    id: deploymentIdOf(host, asRunNumber(1)),
    image: { reference: reference(byte) },
  });

function setUp() {
  const time = new TestClock();
  const { clock } = time.open();
  const log: string[] = [];
  const warn = (_: object, message: string): void => void log.push(message);
  const world = { isAway: false, pinned: new Set<string>(), slots: 0, asked: 0, caNeeded: '' };
  const lost = new Set<string>();
  const pin: HostImages['pin'] = async (_, { from, needs }: WantedHostImage, signal) => {
    world.asked += 1;
    const name = from.kind === 'registry' ? from.reference : from.url;
    const caPem = (from.kind === 'registry' && from.caPem) || '';
    if (caPem !== world.caNeeded) {
      // For as long as its tries go on.
      await new Promise<void>((resolve) => {
        clock.after(300_000, resolve);
        signal.addEventListener('abort', () => resolve());
      });
      throw new OciError('untrusted', 'nobody vouches for it');
    }
    if (world.isAway) throw new OciError('unreachable', 'no route to the registry');
    expect([needs, signal.aborted]).toEqual(['netboot', false]);
    world.slots += 1;
    world.pinned.add(name);
    const digest = digestOfHex('cd'.repeat(32));
    const kernel = { mediaType: 'x', digest, sizeBytes: 5 };
    return {
      image: { version: '', netboot: { kernel, initrds: [], kernelArguments: name } },
      digests: [digest],
      giveBackSlot: () => void (world.slots -= 1),
      ...{ isWhole: async () => !lost.delete(name), doubt: () => {} },
      ...{ whole: Promise.resolve(), restarted: new AbortController().signal },
      release: () => void world.pinned.delete(name),
    };
  };
  const images = new NetbootImages({
    ...{ clock, log: { ...quietLog, warn }, images: { pin }, architecture: 'amd64' },
    credential: async () => undefined,
  });
  return { images, log, lost, time, world };
}

test('an image that hosts boot is here and pinned, and takes no slot of a fetch', async () => {
  const { images, time, world } = setUp();
  images.want([deployment('a', '1'), deployment('b', '1'), deployment('c', '2')]);
  expect(images.find(deployment('a', '1')).kind).toBe('waiting');
  await time.run(1);
  expect(images.find(deployment('b', '1'))).toMatchObject({
    kind: 'ready',
    image: { kernelArguments: reference('1') },
  });
  expect([...world.pinned]).toEqual([reference('1'), reference('2')]);
  expect([world.slots, world.asked]).toEqual([0, 2]);
});

test('an image that no host boots any more is released', async () => {
  const { images, time, world } = setUp();
  images.want([deployment('a', '1')]);
  await time.run(1);
  images.want([deployment('a', '2')]);
  await time.run(1);
  expect([...world.pinned]).toEqual([reference('2')]);
  expect(images.find(deployment('a', '1'))).toMatchObject({ kind: 'waiting' });
});

test('an image is asked for as the newest snapshot says, and stays when it is here', async () => {
  const { images, time, world } = setUp();
  world.caNeeded = 'CA 2';
  const withCa = (caPem: string) =>
    create(agent.DeploymentSchema, {
      id: deploymentIdOf('a', asRunNumber(1)),
      image: { reference: reference('1'), caPem },
    });
  images.want([withCa('CA 1')]);
  await time.run(1_000);
  images.want([withCa('CA 1')]);
  await time.run(1_000);
  expect(world.asked).toBe(1);
  expect(images.find(withCa('CA 1')).kind).toBe('waiting');
  images.want([withCa('CA 2')]);
  await time.run(1);
  expect(images.find(withCa('CA 2')).kind).toBe('ready');
  images.want([withCa('CA 3')]);
  await time.run(60_000);
  expect(images.find(withCa('CA 3')).kind).toBe('ready');
  expect([world.asked, [...world.pinned]]).toEqual([2, [reference('1')]]);
});

test('an image that cannot be fetched is tried for ever, and the reason is reported', async () => {
  const { images, log, time, world } = setUp();
  world.isAway = true;
  images.want([deployment('a', '1')]);
  await time.run(200_000);
  const text = 'no route to the registry';
  expect(images.find(deployment('a', '1'))).toEqual({ kind: 'waiting', text });
  expect(world.asked).toBeGreaterThan(5);
  expect(log).toHaveLength(1);
  world.isAway = false;
  await time.run(20_000);
  expect(images.find(deployment('a', '1')).kind).toBe('ready');
});

test('an image that the disk lost is fetched again, and no host boots it meanwhile', async () => {
  const { images, lost, time, world } = setUp();
  images.want([deployment('a', '1')]);
  await time.run(600_000);
  expect(world.asked).toBe(1);
  world.isAway = true;
  lost.add(reference('1'));
  await time.run(60_000);
  expect(images.find(deployment('a', '1')).kind).toBe('waiting');
  expect([...world.pinned]).toEqual([]);
  world.isAway = false;
  await time.run(20_000);
  expect(images.find(deployment('a', '1')).kind).toBe('ready');
  expect([...world.pinned]).toEqual([reference('1')]);
});
