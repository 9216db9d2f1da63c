/** The boot snapshot in a session: what puts it in force, and what it gives way to. */
import { asIncarnation, asRunNumber, deploymentIdOf } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { journalPath, snapshotPath, World } from './testing/world.ts';

async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

describe('the boot snapshot', () => {
  const hosts = [{ hostUid: 'h', hostName: 'h1', macs: ['52:54:00:00:00:01'] }];

  test('is in force at once, acknowledged once on disk, and there after a restart', async () => {
    const world = await connected();
    const before = world.session?.bootState();
    world.controlPlane.send({ case: 'bootSnapshot', value: { generation: 7n, hosts } });
    await world.run(100);
    expect(world.session?.bootState().snapshot).toEqual({ generation: 7, hosts });
    expect(world.session?.bootState().snapshot).not.toBe(before?.snapshot);
    expect(world.session?.bootState()).toBe(world.session?.bootState());
    expect(world.controlPlane.others).toMatchObject([
      { case: 'snapshotApplied', value: { generation: 7n } },
    ]);
    world.controlPlane.reachable = false;
    await world.restart();
    expect(world.session?.bootState().snapshot).toEqual({ generation: 7, hosts });
  });

  test('names what hosts boot over the network, after a restart as well', async () => {
    const world = await connected();
    const id = deploymentIdOf('h', asRunNumber(3));
    const netboot = { id, image: { reference: 'registry.example.org/net' } };
    const diskless = [{ ...hosts[0], netboot }];
    world.controlPlane.send({ case: 'bootSnapshot', value: { generation: 7n, hosts: diskless } });
    await world.run(100);
    world.controlPlane.reachable = false;
    await world.restart();
    expect(world.session?.bootState().snapshot.hosts).toEqual([{ ...hosts[0], netboot: true }]);
    expect(world.session?.netbootOf('h')).toMatchObject(netboot);
    world.controlPlane.reachable = true;
    await world.run(60_000);
    world.controlPlane.send({ case: 'forget', value: { hostUid: 'h' } });
    await world.run(100);
    expect(world.session?.netbootOf('h')).toBeUndefined();
  });

  test('is not acknowledged while the disk does not take it', async () => {
    const world = await connected();
    world.disk.failing = true;
    world.controlPlane.send({ case: 'bootSnapshot', value: { generation: 7n, hosts } });
    await world.run(100);
    expect(world.session?.bootState().snapshot.generation).toBe(7);
    expect(world.controlPlane.others).toEqual([]);
  });

  test('never gives way to an older one of the same incarnation', async () => {
    const world = await connected();
    const generationAfter = async (generation: bigint) => {
      world.controlPlane.send({ case: 'bootSnapshot', value: { generation, hosts } });
      await world.run(100);
      return world.session?.bootState().snapshot.generation;
    };
    expect(await generationAfter(7n)).toBe(7);
    expect(await generationAfter(6n)).toBe(7);
    await world.restart();
    expect(await generationAfter(5n)).toBe(7);
    expect(await generationAfter(7n)).toBe(7);
    const applied = { case: 'snapshotApplied', value: { generation: 7n } };
    expect(world.controlPlane.others).toMatchObject([applied, applied]);
    world.controlPlane.incarnation = asIncarnation('restored');
    world.controlPlane.cut();
    await world.run(5000);
    const { incarnation, revision } = world.controlPlane;
    const value = { incarnation, revision, by: 'user:ann' };
    world.controlPlane.send({ case: 'storeAccepted', value });
    await world.run(5000);
    expect(await generationAfter(2n)).toBe(2);
  });

  test('gives way to any once the journal is new, which has seen no store', async () => {
    const world = await connected();
    world.controlPlane.send({ case: 'bootSnapshot', value: { generation: 7n, hosts } });
    await world.run(100);
    world.kill();
    world.disk.remove(journalPath);
    await world.restart();
    expect(world.session?.bootState().snapshot.hosts).toEqual(hosts);
    world.controlPlane.send({ case: 'bootSnapshot', value: { generation: 5n, hosts: [] } });
    await world.run(100);
    expect(world.session?.bootState().snapshot).toEqual({ generation: 5, hosts: [] });
  });

  test('a snapshot that cannot be read counts as none', async () => {
    const world = new World();
    world.disk.replace(snapshotPath, Uint8Array.of(255, 255, 255));
    await world.bootAndConnect();
    expect(world.session?.bootState().snapshot).toEqual({ generation: 0, hosts: [] });
  });
});
