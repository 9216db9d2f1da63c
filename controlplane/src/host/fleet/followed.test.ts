/** How a replica learns of hosts that others write: by watch, and by a slow resync. */

import { RunKind } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { connectAgent } from '../testing/plain-agent.ts';
import { type ReplicaOptions, type Rig, rigWith } from '../testing/rig.ts';

const hourMs = 3_600_000;

async function started(options: ReplicaOptions = {}) {
  const rig = rigWith();
  const replica = await rig.replica({ resyncIntervalMs: hourMs, ...options });
  await rig.advance(1_000);
  return { rig, replica };
}

const picked = (rig: Rig, id = 'h1') => rig.status(id).run?.kind === RunKind.VERIFY;

describe('a host that another replica creates', () => {
  test('is picked up at once', async () => {
    const { rig } = await started();
    rig.addHost(1);
    await rig.advance(1_000);
    expect(picked(rig)).toBe(true);
  });

  test('is picked up after the watch has broken off, be it written before or after', async () => {
    const { rig, replica } = await started();
    replica.breakWatches();
    rig.addHost(1);
    await rig.advance(10_000);
    expect(picked(rig)).toBe(true);
    rig.addHost(2);
    await rig.advance(1_000);
    expect(picked(rig, 'h2')).toBe(true);
  });

  test('is picked up after the watch has broken off again and again', async () => {
    const { rig, replica } = await started();
    for (let round = 0; round < 5; round++) {
      replica.breakWatches();
      await rig.advance(10_000);
    }
    rig.addHost(1);
    await rig.advance(1_000);
    expect(picked(rig)).toBe(true);
  });

  test('is picked up after a while without the store', async () => {
    let away = false;
    const { rig, replica } = await started({
      faults: () => ({ kind: away ? 'requestLost' : 'none' }),
    });
    away = true;
    replica.breakWatches();
    rig.addHost(1);
    await rig.advance(60_000);
    expect(picked(rig)).toBe(false);
    away = false;
    await rig.advance(10_000);
    expect(picked(rig)).toBe(true);
  });

  test('a host that the watch missed is found by the slow look at everything', async () => {
    const { rig } = await started({ deaf: true, resyncIntervalMs: 60_000 });
    rig.addHost(1);
    await rig.advance(30_000);
    expect(picked(rig)).toBe(false);
    await rig.advance(40_000);
    expect(picked(rig)).toBe(true);
  });

  test('is found by the slow look after one that failed', async () => {
    let away = false;
    const { rig } = await started({
      deaf: true,
      resyncIntervalMs: 60_000,
      faults: () => ({ kind: away ? 'requestLost' : 'none' }),
    });
    rig.addHost(1);
    away = true;
    await rig.advance(90_000);
    away = false;
    await rig.advance(60_000);
    expect(picked(rig)).toBe(true);
  });

  test('comes into the boot snapshot of its rack', async () => {
    const { rig, replica } = await started();
    const plain = await connectAgent(rig, replica);
    rig.addHost(1);
    await rig.advance(1_000);
    expect(
      plain
        .of('bootSnapshot')
        .at(-1)
        ?.hosts.map(({ hostUid }) => hostUid),
    ).toEqual(['u1']);
    expect(plain.ids()).toEqual(['u1/1/0/1']);
  });
});

test('a host that another replica removes is out of the boot snapshot', async () => {
  const { rig, replica } = await started();
  rig.addHost(1);
  await rig.advance(1_000);
  const plain = await connectAgent(rig, replica);
  rig.remove('hosts.h1');
  await rig.advance(5_000);
  expect(plain.of('bootSnapshot').at(-1)?.hosts).toEqual([]);
  expect(replica.hosts.hostIdsOfRack('r1')).toEqual([]);
});

test('a host whose removal the watch missed is out of it after the slow look', async () => {
  const { rig, replica } = await started({ deaf: true, resyncIntervalMs: 60_000 });
  rig.addHost(1);
  await rig.advance(61_000);
  expect(replica.hosts.hostIdsOfRack('r1')).toEqual(['h1']);
  rig.remove('hosts.h1');
  await rig.advance(61_000);
  expect(replica.hosts.hostIdsOfRack('r1')).toEqual([]);
});

test('a replica that is stopped looks at nothing any more', async () => {
  const { rig, replica } = await started({ resyncIntervalMs: 60_000 });
  replica.hosts.stop();
  rig.addHost(1);
  await rig.advance(hourMs);
  expect(picked(rig)).toBe(false);
});
