/** Masks that name one entry of a map: labels of each resource, and priorities of steps. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  specOf,
  startFixture,
  violatedFields,
} from './rpc.fixture.ts';

const image = `registry.example/os@sha256:${'a'.repeat(64)}`;
const labels = { site: 'x', role: 'db' };

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
  await fixture.racks.createRack({ rackId: 'r7', rack: { labels } });
  await addSurroundings(fixture);
  await fixture.hosts.createHost({ hostId: 'h7', host: { labels, spec: specOf(7) } });
  const pool = { labels, spec: { hosts: { labels }, image } };
  await fixture.pools.createPool({ poolId: 'p7', pool });
});

afterEach(() => fixture.stop());

type Labels = Record<string, string>;
type Update = (labels: Labels, ...paths: string[]) => Promise<{ readonly labels: Labels }>;

const updates: readonly [string, Update][] = [
  [
    'host',
    (next, ...paths) =>
      fixture.hosts.updateHost({
        host: { name: 'hosts/h7', labels: next },
        updateMask: { paths },
      }),
  ],
  [
    'rack',
    (next, ...paths) =>
      fixture.racks.updateRack({
        rack: { name: 'racks/r7', labels: next },
        updateMask: { paths },
      }),
  ],
  [
    'pool',
    (next, ...paths) =>
      fixture.pools.updatePool({
        pool: { name: 'pools/p7', labels: next },
        updateMask: { paths },
      }),
  ],
];

describe.each(updates)('labels of a %s', (_, update) => {
  test('are set and removed one by one, down to the last', async () => {
    expect((await update({ site: 'y' }, 'labels.site')).labels).toEqual({ site: 'y', role: 'db' });
    expect((await update({ new: 'n' }, 'labels.new', 'labels.role')).labels).toEqual({
      site: 'y',
      new: 'n',
    });
    const dotted = 'example.com/site';
    const named = await update({ [dotted]: 'z' }, `labels.${dotted}`, 'labels.`new`');
    expect(named.labels).toEqual({ site: 'y', [dotted]: 'z' });
    const last = await update({}, 'labels.site', `labels.\`${dotted}\``);
    expect(last.labels).toEqual({});
  });

  test('are kept when a mask is wrong, which is named', async () => {
    for (const path of ['labels.', 'labels.``', 'labels.`site', 'label.site', 'name.site']) {
      expect(await violatedFields(update({}, path, 'labels.role'))).toEqual(['update_mask']);
    }
    const bad = await violatedFields(update({ 'Bad Key': 'x' }, 'labels.Bad Key'));
    expect(bad.join()).toMatch(/^(host|rack|pool)\.labels$/);
    expect((await update({ more: '1' }, 'labels.more')).labels).toEqual({ ...labels, more: '1' });
  });

  test('are all kept when eight callers set one each at the same moment', async () => {
    const keys = Array.from({ length: 8 }, (_each, index) => `k${index}`);
    await Promise.all(keys.map((key) => update({ [key]: '1' }, `labels.${key}`)));
    const { labels: kept } = await update({}, 'labels.role');
    expect(Object.keys(kept).sort()).toEqual([...keys, 'site']);
  });
});

test('a change to a selector or priorities changes only the entries that are named', async () => {
  const { pools, hosts, fleet } = fixture;
  const spec = { hosts: { labels: { role: 'web' } } };
  const changed = await pools.updatePool({
    pool: { name: 'pools/p7', spec },
    updateMask: { paths: ['spec.hosts.labels.role'] },
  });
  expect(changed.spec?.hosts?.labels).toEqual({ site: 'x', role: 'web' });
  const own = (priorityOverrides: Record<string, number>, ...paths: string[]) =>
    hosts.updateHost({
      host: { name: 'hosts/h7', spec: { cleaning: { priorityOverrides } } },
      updateMask: { paths },
    });
  const map = 'spec.cleaning.priority_overrides';
  await own({ 'bios.reset': 0, 'raid.apply': 5 }, `${map}.bios.reset`, `${map}.raid.apply`);
  const left = await own({}, `${map}.bios.reset`);
  expect(left.spec?.cleaning?.priorityOverrides).toEqual({ 'raid.apply': 5 });
  const all = (priorityOverrides: Record<string, number>, ...paths: string[]) =>
    fleet.updateFleet({ fleet: { spec: { priorityOverrides } }, updateMask: { paths } });
  await all({ 'bios.reset': 0, 'raid.apply': 5 });
  const kept = await all(
    { 'a.b': 1 },
    'spec.priority_overrides.a.b',
    'spec.priority_overrides.`raid.apply`',
  );
  expect(kept.spec?.priorityOverrides).toEqual({ 'bios.reset': 0, 'a.b': 1 });
});
