/** What a lease does not permit: a store that lost something, and a freeze (DESIGN §5, §10). */
import { agent, asIncarnation, asRevision, type HostUid } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { World } from './testing/world.ts';

async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

test('DESIGN §10: what a lease told of the store is not gone at the next session', async () => {
  const world = await connected();
  const told = world.controlPlane.revision;
  world.controlPlane.revision = asRevision(told + 40n);
  await world.run(10_000);
  world.controlPlane.revision = told;
  await world.restart();
  await world.issue(world.erase('h/1/1/1'), 10_000);
  expect(world.touched).toEqual([]);
  // Revisions that came after the loss are not those that were lost.
  world.controlPlane.revision = asRevision(told + 80n);
  await world.restart();
  await world.run(10_000);
  expect(world.touched).toEqual([]);
  const refusal = { storeRefusal: agent.StoreRefusalKind.BEHIND };
  expect(world.controlPlane.hellos.at(-1)).toMatchObject(refusal);
});

test('DESIGN §10: a list of hosts that is in force tells how far the store had come', async () => {
  const world = await connected();
  const told = world.controlPlane.revision;
  const { incarnation } = world.controlPlane;
  const value = { generation: told + 40n, hosts: [] };
  world.controlPlane.send({ case: 'bootSnapshot', value });
  await world.run(100);
  await world.restart();
  expect(world.controlPlane.hellos.at(-1)).toMatchObject({ incarnation, revision: told + 40n });
  await world.issue(world.erase('h/1/1/1'), 10_000);
  expect(world.touched).toEqual([]);
});

describe('the work lease', () => {
  const none = { storeRefusal: agent.StoreRefusalKind.UNSPECIFIED, storeRefused: '' };

  test('is not given by a control plane whose store has lost what the agent saw', async () => {
    const world = await connected();
    world.controlPlane.revision = asRevision(5);
    await world.restart();
    await world.run(5000);
    expect(world.session?.isLeaseValid()).toBe(false);
    await world.issue(world.erase('h/1/1/1'));
    await world.issue(world.verify('g/1/1/1'));
    expect(world.touched).toEqual(['g/1/1/1']);
    accept(world);
    await world.run(5000);
    expect(world.touched).toEqual(['g/1/1/1', 'h/1/1/1']);
    expect(world.controlPlane.hellos.at(-1)).toMatchObject(none);
  });

  test('is not given by a control plane with another store until that is accepted', async () => {
    const world = await connected();
    world.controlPlane.incarnation = asIncarnation('incarnation-2');
    world.controlPlane.revision = asRevision(world.controlPlane.revision + 100n);
    await world.restart();
    await world.issue(world.erase('h/1/1/1'), 10_000);
    expect(world.touched).toEqual([]);
    const { OTHER_INCARNATION: storeRefusal } = agent.StoreRefusalKind;
    await world.restart();
    expect(world.controlPlane.hellos.at(-1)).toMatchObject({ storeRefusal });
    accept(world);
    await world.run(5000);
    expect(world.touched).toEqual(['h/1/1/1']);
    await world.restart();
    await world.run(5000);
    expect(world.session?.isLeaseValid()).toBe(true);
    expect(world.controlPlane.hellos.at(-1)).toMatchObject(none);
  });
});

test('DESIGN §10: no boot list of another store is in force until that is accepted', async () => {
  const world = await connected();
  const { controlPlane } = world;
  const list = (generation: bigint, hostUid: HostUid) => {
    const hosts = [{ hostUid, hostName: 'h1', macs: ['52:54:00:00:00:01'] }];
    controlPlane.send({ case: 'bootSnapshot', value: { generation, hosts } });
    return world.run(100);
  };
  const booting = () => world.session?.bootState().snapshot.hosts.map(({ hostUid }) => hostUid);
  await list(controlPlane.revision, 'present');
  expect(booting()).toEqual(['present']);
  controlPlane.incarnation = asIncarnation('incarnation-2');
  await world.restart();
  const told = controlPlane.others.length;
  await list(controlPlane.revision + 100n, 'earlier');
  expect(booting()).toEqual(['present']);
  expect(controlPlane.others).toHaveLength(told);
  await world.restart();
  expect(booting()).toEqual(['present']);
  const sessions = controlPlane.hellos.length;
  accept(world);
  await world.run(5000);
  expect(controlPlane.hellos).toHaveLength(sessions + 1);
  await list(1n, 'earlier');
  expect(booting()).toEqual(['earlier']);
  expect(controlPlane.others.slice(told)).toMatchObject([
    { case: 'snapshotApplied', value: { generation: 1n } },
  ]);
});

test('DESIGN §10: with what was lost before it the revision never falls', async () => {
  const world = await connected();
  const seen = () => {
    const { revision = 0n, lostRevisions = 0n } = world.controlPlane.hellos.at(-1) ?? {};
    return revision + lostRevisions;
  };
  await world.restart();
  const before = seen();
  world.controlPlane.revision = asRevision(5);
  await world.restart();
  world.controlPlane.send({
    case: 'storeAccepted',
    value: {
      incarnation: world.controlPlane.incarnation,
      revision: asRevision(5),
      lostRevisions: asRevision(before - 5n),
      by: 'user:ann',
    },
  });
  await world.run(5_000);
  expect(seen()).toBeGreaterThanOrEqual(before);
  await world.restart();
  expect(seen()).toBeGreaterThanOrEqual(before);
});

/** A person has accepted the store as it is. */
function accept(world: World): void {
  const { incarnation, revision } = world.controlPlane;
  const value = { incarnation, revision, by: 'user:ann' };
  world.controlPlane.send({ case: 'storeAccepted', value });
}

describe('a freeze', () => {
  const why = 'racks/r1 is frozen by user:ann: a fire drill';

  test('lets nothing destructive begin, and what came too late ends as frozen', async () => {
    const world = await connected();
    world.controlPlane.frozen = why;
    await world.run(3000);
    await world.issue(world.verify('g/1/1/1'));
    await world.issue(world.erase('h/1/1/1'), 60_000);
    await world.run(20_000);
    expect(world.touched).toEqual(['g/1/1/1']);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind: 'retryAfter',
      reason: 'frozen',
      message: why,
    });
  });

  test.each([
    ['a kind without a text', agent.BrakeKind.FREEZE, ''],
    ['a kind that is not known here', 99, ''],
    ['the text of an older control plane, without a kind', agent.BrakeKind.UNSPECIFIED, why],
  ])('withholds destructive work by %s', async (_what, brake, text) => {
    const world = await connected();
    Object.assign(world.controlPlane, { brake, frozen: text });
    await world.run(3000);
    await world.issue(world.erase('h/1/1/1'), 60_000);
    await world.run(20_000);
    expect(world.touched).toEqual([]);
    const outcome = world.controlPlane.outcome('h/1/1/1');
    expect(outcome).toMatchObject({ kind: 'retryAfter', reason: 'frozen' });
    expect(outcome).not.toMatchObject({ message: '' });
  });

  test('a freeze that is over when it is heard of again is only waited out', async () => {
    const world = await connected();
    world.controlPlane.frozen = why;
    await world.run(3000);
    await world.issue(world.erase('h/1/1/1'), 3000);
    expect(world.touched).toEqual([]);
    world.controlPlane.frozen = '';
    await world.run(5000);
    expect(world.touched).toEqual(['h/1/1/1']);
  });

  test('says nothing any more once the lease that brought it is over', async () => {
    const world = await connected();
    world.controlPlane.frozen = why;
    await world.run(3000);
    world.controlPlane.leaseMs = 0;
    await world.run(10_000);
    await world.issue(world.erase('h/1/1/1'), 60_000);
    await world.run(30_000);
    expect(world.touched).toEqual([]);
    expect(world.controlPlane.outcome('h/1/1/1')).toBeUndefined();
    world.controlPlane.frozen = '';
    world.controlPlane.leaseMs = 5000;
    await world.run(3000);
    expect(world.touched).toEqual(['h/1/1/1']);
  });
});
