/** Which hosts a pool holds, which it leaves to others, and which do not fit. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import {
  HostState,
  type PoolSpec,
  PoolSpecSchema,
  RolloutSlotState,
  readActor,
  userActor,
  store as wire,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { digest, seen } from '../decide/rollout.fixture.ts';
import { compare, membersMax, membersOf, type OtherPool } from './members.ts';
import { isSelected, type SeenHost } from './seen.ts';

type SpecInit = Exclude<MessageInitShape<typeof PoolSpecSchema>, PoolSpec>;

function poolOf(spec: SpecInit = {}, members: readonly SeenHost[] = []): wire.PoolRecord {
  return create(wire.PoolRecordSchema, {
    pool: {
      name: 'pools/p',
      uid: 'pool-uid',
      spec: create(PoolSpecSchema, { hosts: { labels: { pool: 'p' } }, ...spec }),
      status: { target: { digest: digest('A') } },
    },
    members: members.map(({ name, uid }) => ({ host: name, hostUid: uid, notReady: true })),
  });
}

const rival = (spec: SpecInit): OtherPool => {
  return { name: 'pools/q', spec: create(PoolSpecSchema, spec) };
};

function held(record: wire.PoolRecord, hosts: SeenHost[], others: OtherPool[] = []) {
  const { members, contested, unready } = membersOf(record, hosts, others);
  return {
    members: members.map(({ host }) => host),
    contested: Object.fromEntries(contested),
    unready: unready.map(({ name }) => name),
  };
}

const none = { members: [], contested: {}, unready: [] };

test('a pool without a spec holds nobody', () => {
  expect(held(create(wire.PoolRecordSchema), [seen(1)])).toEqual(none);
  expect(held(create(wire.PoolRecordSchema, { pool: { name: 'pools/p' } }), [seen(1)])).toEqual(
    none,
  );
});

test('a host that it selects and nobody holds becomes a member, in the order of names', () => {
  const hosts = [seen(3), seen(1), seen(2, { labels: {} })];
  expect(held(poolOf(), hosts)).toEqual({ ...none, members: ['hosts/h1', 'hosts/h3'] });
  const { members } = membersOf(poolOf({}, [seen(1)]), hosts, []);
  expect(members.map(({ hostUid, notReady }) => [hostUid, notReady])).toEqual([
    ['u1', true],
    ['u3', false],
  ]);
});

test.each<[string, Partial<SeenHost>, object]>([
  ['somebody claims', { claimedBy: userActor('ann') }, { 'hosts/h1': 'claimed by user:ann' }],
  ['is being deleted', { isDeleting: true }, {}],
])('a host that %s is no member', (_, change, contested) => {
  for (const members of [[], [seen(1)]]) {
    expect(held(poolOf({}, members), [seen(1, change)])).toEqual({ ...none, contested });
  }
});

test.each<[string, Partial<SeenHost>]>([
  ['is not available yet', { state: HostState.MANAGEABLE }],
  ['is in rescue', { isInRescue: true }],
  ['nobody has looked at after a restore', { waitsForReview: true }],
])('a host that %s is not taken yet, but kept where it is claimed', (_, change) => {
  const unready = { ...none, unready: ['hosts/h1'] };
  expect(held(poolOf(), [seen(1, change)])).toEqual(unready);
  const ours = seen(1, { ...change, claimedBy: readActor('pools/p') });
  expect(held(poolOf(), [ours]).members).toEqual(['hosts/h1']);
  expect(held(poolOf({}, [ours]), [ours]).members).toEqual(['hosts/h1']);
});

test('a member that is nobody’s by a restored store is not held by its membership', () => {
  const host = seen(1, { waitsForReview: true });
  expect(held(poolOf({}, [host]), [host])).toEqual({ ...none, unready: ['hosts/h1'] });
  const led = seen(1, { state: HostState.MANAGEABLE });
  expect(held(poolOf({}, [led]), [led]).members).toEqual(['hosts/h1']);
});

test('a host that two pools want whole is held by neither; one with a size leaves it', () => {
  const whole = rival({ hosts: { labels: { pool: 'p' } } });
  const contested = { 'hosts/h1': 'selected by pools/q, too' };
  expect(held(poolOf(), [seen(1)], [whole])).toEqual({ ...none, contested });
  expect(held(poolOf({ size: 3 }), [seen(1)], [whole])).toEqual({ ...none, contested });
  const ours = seen(1, { claimedBy: readActor('pools/p') });
  for (const [host, others] of [
    [ours, [whole]],
    [seen(1), [rival({ hosts: { labels: { pool: 'p' } }, size: 1 })]],
    [seen(1), [rival({ hosts: { labels: { pool: 'q' } } })]],
    [seen(1), [{ name: 'pools/q', spec: undefined }]],
  ] as const) {
    expect(held(poolOf(), [host], [...others]).members).toEqual(['hosts/h1']);
  }
  expect(held(poolOf({}, [seen(1)]), [seen(1)], [whole]).members).toEqual(['hosts/h1']);
});

test('a pool with a size takes what needs the least work, and keeps whom it has', () => {
  const hosts = [
    seen(1, { digest: digest('Z') }),
    seen(2, { state: HostState.AVAILABLE, digest: '' }),
    seen(3),
    seen(4, { digest: digest('Z'), claimedBy: readActor('pools/p') }),
    seen(5, { digest: digest('Z') }),
    seen(6),
  ];
  const members = [hosts[4] as SeenHost, hosts[5] as SeenHost];
  const chosen = (size: number) => held(poolOf({ size }, members), hosts).members;
  const order = ['hosts/h6', 'hosts/h5', 'hosts/h4', 'hosts/h3', 'hosts/h2', 'hosts/h1'];
  for (let size = 0; size <= order.length; size += 1) {
    expect(chosen(size)).toEqual(order.slice(0, size).toSorted(compare));
  }
  expect(held(poolOf({ size: 1 }), hosts).contested).toEqual({});
});

test('a member that is at work stays, whatever the pool selects or how small it is', () => {
  const host = seen(1, { labels: {}, claimedBy: readActor('pools/p') });
  const record = poolOf({ size: 1 }, [host]);
  const slot = { hostUid: 'u1', host: host.name, state: RolloutSlotState.RUNNING };
  const of = (state: RolloutSlotState) => {
    const next = poolOf({ size: 1 }, [host]);
    next.pool = create(wire.PoolRecordSchema, {
      pool: { ...record.pool, status: { slots: [{ ...slot, state }] } } as object,
    }).pool;
    return held(next, [host, seen(2)]).members;
  };
  expect(of(RolloutSlotState.RUNNING)).toEqual(['hosts/h1']);
  expect(of(RolloutSlotState.GATE)).toEqual(['hosts/h2']);
});

test('no pool holds more than fit in its record, and who is left out is told', () => {
  const hosts = Array.from({ length: membersMax + 2 }, (_, at) => seen(at + 1));
  const { members, contested } = held(poolOf(), hosts);
  expect(members).toHaveLength(membersMax);
  expect(Object.values(contested)).toEqual(Array(2).fill('one too many: a pool holds 300 hosts'));
});

test.each([
  [undefined, false],
  [{}, false],
  [{ names: ['hosts/h1'] }, true],
  [{ names: ['hosts/h2'] }, false],
  [{ rack: 'racks/r2' }, true],
  [{ rack: 'racks/r1' }, false],
  [{ labels: { pool: 'p' } }, true],
  [{ labels: { pool: 'p', site: 'x' } }, false],
  [{ names: ['hosts/h1'], rack: 'racks/r2', labels: { pool: 'p' } }, true],
  [{ names: ['hosts/h1'], rack: 'racks/r1' }, false],
  [{ names: ['hosts/h1'], labels: { pool: 'q' } }, false],
])('selector %# means the host or not', (hosts, isMeant) => {
  const { hosts: selector } = create(PoolSpecSchema, hosts === undefined ? {} : { hosts });
  expect(isSelected(selector, seen(1))).toBe(isMeant);
});
