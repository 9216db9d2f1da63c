import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  type HostId,
  HostState,
  type HostUid,
  InventorySchema,
  poolCondition,
  Transport,
  store as wire,
} from '@rackwright/messages';
import { storeKey } from '@rackwright/store';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from '../../services/rpc.fixture.ts';

const digest = `sha256:${'ab'.repeat(32)}`;
const other = `sha256:${'cd'.repeat(32)}`;
const image = `registry.example/os@${digest}`;
const labels = { pool: 'web' };

let fixture: Fixture;

beforeAll(async () => {
  fixture = await startFixture();
  await addSurroundings(fixture);
});

afterAll(() => fixture.stop());

/** An available host, without a real machine. */
async function addAvailable(hostId: HostId, n: number): Promise<void> {
  await fixture.hosts.createHost({ hostId, host: { labels, spec: specOf(n) } });
  const key = storeKey('hosts', hostId);
  for (;;) {
    const found = await fixture.store.get(key);
    if (found.kind !== 'found') throw new Error(`${key} is not there`);
    const record = fromBinary(wire.HostRecordSchema, found.value);
    const status = record.host?.status;
    if (status === undefined) throw new Error(`${key} has no status`);
    Object.assign(status, { state: HostState.AVAILABLE, dirty: false });
    delete status.run;
    if (record.host?.spec?.bmc !== undefined) record.verifiedBmc = record.host.spec.bmc;
    delete record.operation;
    const value = toBinary(wire.HostRecordSchema, record);
    const written = await fixture.store.put(key, value, found.revision, undefined);
    if (written.kind === 'ok') return;
  }
}

/** Two disks, of which the second one must not be written. */
async function addDisks(hostId: HostId): Promise<void> {
  const disk = (serial: string, device: string) => ({
    ...{ device, serial, model: 'M', sizeBytes: 1_000_000_000_000n, transport: Transport.SATA },
    regions: [{ name: device, sizeBytes: 1_000_000_000_000n, logicalBlockBytes: 512 }],
  });
  const { uid: hostUid } = await fixture.hosts.getHost({ name: `hosts/${hostId}` });
  const facts = create(wire.HostFactsSchema, {
    hostUid,
    inventory: create(InventorySchema, { devices: [disk('ROOT', 'sda'), disk('OTHER', 'sdb')] }),
  });
  const value = toBinary(wire.HostFactsSchema, facts);
  const key = storeKey('facts', hostId);
  const found = await fixture.store.get(key);
  await fixture.store.put(key, value, found.kind === 'found' ? found.revision : 'absent');
  const spec = { rootDisk: { serial: 'ROOT' } };
  const updateMask = { paths: ['spec.root_disk'] };
  await fixture.hosts.updateHost({ host: { name: `hosts/${hostId}`, spec }, updateMask });
}

test('a pool is made, changed and listed; and once, however often it is asked for', async () => {
  const { pools } = fixture;
  const asked = { poolId: 'web', requestId: 'r1', pool: { spec: { hosts: { labels }, image } } };
  const made = await pools.createPool(asked);
  expect(made.name).toBe('pools/web');
  expect((await pools.createPool(asked)).uid).toBe(made.uid);
  expect((await failureOf(pools.createPool({ ...asked, requestId: 'r2' }))).kind).toBe(
    'alreadyExists',
  );
  const pool = { name: 'pools/web', spec: { size: 2, historyLimit: 5 } };
  const changed = await pools.updatePool({ pool, requestId: 'u1' });
  expect(changed.spec).toMatchObject({ size: 2, historyLimit: 5, image });
  const stale = { name: 'pools/web', etag: made.etag, spec: { size: 3 } };
  expect((await failureOf(pools.updatePool({ pool: stale }))).kind).toBe('aborted');
  // A repeated request, with an etag that was right then.
  const again = await pools.updatePool({ pool, requestId: 'u1' });
  expect(again.spec?.size).toBe(2);
  expect((await pools.listPools({})).pools.map(({ name }) => name)).toEqual(['pools/web']);
});

test('a mistake in a pool is refused by its field, and nothing is stored', async () => {
  const { pools } = fixture;
  const spec = {
    image: 'registry.example/os',
    size: 0,
    pins: { 'hosts/h1': 'registry.example/os:1' },
    rollout: {
      maxUnavailable: { amount: { case: 'percent' as const, value: 101 } },
      failureThreshold: { amount: { case: 'count' as const, value: 0 } },
      windows: [{ cron: '0 25 * * *', duration: durationFromMs(3_600_000), timeZone: 'Nowhere' }],
      waves: [{ name: 'first' }],
      gate: { approval: true, deadline: durationFromMs(1) },
    },
  };
  expect(await violatedFields(pools.createPool({ poolId: 'bad', pool: { spec } }))).toEqual([
    'pool.spec.hosts',
    'pool.spec.size',
    'pool.spec.image',
    'pool.spec.pins["hosts/h1"]',
    'pool.spec.rollout.max_unavailable.percent',
    'pool.spec.rollout.failure_threshold.count',
    'pool.spec.rollout.gate.deadline',
    'pool.spec.rollout.waves[0].hosts',
    'pool.spec.rollout.windows[0].cron',
    'pool.spec.rollout.windows[0].time_zone',
  ]);
  expect((await failureOf(pools.getPool({ name: 'pools/bad' }))).kind).toBe('notFound');
  const named = { hosts: { labels }, image };
  const create = pools.createPool({ poolId: 'Web', pool: { spec: named } });
  expect(await violatedFields(create)).toEqual(['pool_id']);
});

test('a pool claims its hosts, and says of each why it does not go', async () => {
  const { pools, hosts } = fixture;
  await addAvailable('h1', 1);
  await addAvailable('h2', 2);
  for (const hostId of ['h1', 'h2']) await addDisks(hostId);
  await expect
    .poll(async () => (await hosts.getHost({ name: 'hosts/h2' })).status?.claim?.by)
    .toBe('pools/web');
  // The rack has no agent here: a run waits for it, and the others wait for that first one.
  const away = 'the agent of the rack is not connected';
  await expect
    .poll(async () => {
      const { hosts: listed } = await pools.listPoolHosts({ parent: 'pools/web' });
      return listed.map(({ state, message }) => `${state} ${message}`).toSorted();
    })
    .toEqual([
      `out ${away}`,
      'waiting the first host goes alone, and is not healthy on the image yet',
    ]);
  const told = await pools.explainPool({ name: 'pools/web' });
  expect(told.causes.map(({ text }) => text).join('\n')).toContain(away);
  const host = await hosts.explainHost({ name: 'hosts/h1' });
  expect(host.causes.map(({ text }) => text).join('\n')).toContain('pools/web: ');
  // The host that is out has already gone; the plan has the others.
  const plan = await pools.planRollout({ name: 'pools/web' });
  expect(plan.hosts.map(({ toImage }) => toImage)).toEqual([image]);
  expect(plan.hosts[0]).toMatchObject({ lostDisks: ['ROOT'], keptDisks: ['OTHER'] });
  // With such a hint only the runner can select the disk: no disk is promised to be kept.
  const byPath = { rootDisk: { byPath: 'pci-0000:00:17.0-ata-1' } };
  const updateMask = { paths: ['spec.root_disk'] };
  const name = plan.hosts[0]?.host ?? '';
  await hosts.updateHost({ host: { name, spec: byPath }, updateMask });
  const unsure = await pools.planRollout({ name: 'pools/web' });
  expect(unsure.hosts[0]).toMatchObject({ host: name, lostDisks: [], keptDisks: [] });
  // Except those that must not be written.
  await pools.updatePool({
    pool: { name: 'pools/web', spec: { deploy: { keepDisks: ['OTHER'] } } },
  });
  const kept = await pools.planRollout({ name: 'pools/web' });
  expect(kept.hosts[0]).toMatchObject({ lostDisks: [], keptDisks: ['OTHER'] });
});

test('the history is a query over the ledger, cut only in the view of the pool', async () => {
  const { pools, store } = fixture;
  const { uid } = await pools.getPool({ name: 'pools/web' });
  await pools.updatePool({ pool: { name: 'pools/web', spec: { historyLimit: 1 } } });
  for (const [index, each] of [digest, other, digest].entries()) {
    const record = create(wire.DeploymentRecordSchema, {
      ...{
        poolUid: uid,
        hostUid: `u${index}`,
        run: asRunNumber(1),
        digest: each,
        version: `v${index}`,
      },
      endTime: { seconds: BigInt(index + 1), nanos: 0 },
    });
    const value = toBinary(wire.DeploymentRecordSchema, record);
    await store.put(storeKey('deployments', uid, `u${index}`, '1'), value, 'absent', undefined);
  }
  const { entries } = await pools.listDeployHistory({ parent: 'pools/web' });
  expect(entries.map((each) => [each.digest, each.hostCount, each.version])).toEqual([
    [digest, 2, 'v0'],
    [other, 1, 'v1'],
  ]);
  const { status } = await pools.getPool({ name: 'pools/web' });
  expect(status?.deployHistory.map((each) => each.digest)).toEqual([digest]);
});

test('a history comes in pages, and what is deployed meanwhile repeats none', async () => {
  const { pools, store } = fixture;
  const { uid } = await pools.getPool({ name: 'pools/web' });
  const deploy = async (hostUid: HostUid, hex: string, seconds: number) => {
    const record = create(wire.DeploymentRecordSchema, {
      ...{ poolUid: uid, hostUid, run: asRunNumber(1), digest: `sha256:${hex}` },
      endTime: { seconds: BigInt(seconds), nanos: 0 },
    });
    const value = toBinary(wire.DeploymentRecordSchema, record);
    const key = storeKey('deployments', uid, hostUid, `${seconds}-${hex}`);
    await store.put(key, value, 'absent', undefined);
  };
  // Two at a time, ordered only by their digests.
  for (let at = 0; at < 5; at += 1) await deploy('u1', `a${at}`, 10 + (at >> 1));
  const parent = 'pools/web';
  const seen: string[] = [];
  let pageToken = '';
  do {
    const page = await pools.listDeployHistory({ parent, pageSize: 2, pageToken });
    seen.push(...page.entries.map((each) => each.digest));
    pageToken = page.nextPageToken;
    if (seen.length === 2) await deploy('u2', 'b0', 99);
  } while (pageToken !== '');
  const own = seen.filter((each) => /^sha256:..$/.test(each));
  expect(own).toEqual(['a4', 'a2', 'a3', 'a0', 'a1'].map((hex) => `sha256:${hex}`));
  const asked = pools.listDeployHistory({ parent, pageSize: 2 });
  const { nextPageToken } = await asked;
  const ofAnother = pools.listDeployHistory({ parent: 'pools/db', pageToken: nextPageToken });
  await expect(ofAnother).rejects.toThrow();
  await expect(pools.listDeployHistory({ parent, pageToken: 'x' })).rejects.toThrow(/page_token/);
});

test('a pause is said, and an approval needs somebody who waits for that very digest', async () => {
  const { pools } = fixture;
  const paused = await pools.pausePool({ name: 'pools/web' });
  expect(paused.spec?.rollout?.paused).toBe(true);
  expect(poolCondition(paused.status, 'UpToDate')?.reason).toBe('Paused');
  expect((await pools.resumePool({ name: 'pools/web' })).spec?.rollout?.paused).toBe(false);
  const approval = pools.approvePool({ name: 'pools/web', digest });
  expect((await failureOf(approval)).message).toContain('no host waits for an approval');
  const short = pools.approvePool({ name: 'pools/web', digest: 'sha256:ab' });
  expect(await violatedFields(short)).toEqual(['digest']);
});

test('a tag that nobody can resolve is told, and takes no host', async () => {
  const { pools } = fixture;
  const spec = { hosts: { names: ['hosts/h9'] }, image: 'registry.example/os:stable' };
  await pools.createPool({ poolId: 'tagged', pool: { spec } });
  await expect
    .poll(async () => {
      const { status } = await pools.getPool({ name: 'pools/tagged' });
      return poolCondition(status, 'Resolved');
    })
    .toMatchObject({ status: false, reason: 'ResolutionFailed' });
});

test('a watch sends every pool, then each change, and the end', async () => {
  const { pools } = fixture;
  const seen: string[] = [];
  const watching = (async () => {
    for await (const { kind, pool } of pools.watchPools({ name: 'pools/tagged' })) {
      seen.push(`${kind} ${pool?.spec?.size ?? ''}`);
      if (kind === 2) return;
    }
  })();
  await expect.poll(() => seen).toContain('3 ');
  await pools.updatePool({ pool: { name: 'pools/tagged', spec: { size: 7 } } });
  await expect.poll(() => seen).toContain('1 7');
  const gone = await pools.deletePool({ name: 'pools/tagged', requestId: 'd1' });
  expect(gone.status?.deleting).toBe(true);
  await watching;
  expect((await failureOf(pools.getPool({ name: 'pools/tagged' }))).kind).toBe('notFound');
  // A repeated request gets the same response.
  expect((await pools.deletePool({ name: 'pools/tagged', requestId: 'd1' })).uid).toBe(gone.uid);
});

test('a creation that is repeated after its pool is gone makes no other one', async () => {
  const { pools } = fixture;
  const spec = { hosts: { labels: { pool: 'short' } }, image };
  const asked = { poolId: 'short', requestId: 's1', pool: { spec } };
  const made = await pools.createPool(asked);
  const name = 'pools/short';
  const failure = async () => (await failureOf(pools.getPool({ name }))).kind;
  const goes = async () => {
    await pools.deletePool({ name });
    await expect.poll(failure).toBe('notFound');
  };
  await goes();
  expect((await pools.createPool(asked)).uid).toBe(made.uid);
  expect(await failure()).toBe('notFound');
  // Nor after another one with its name.
  expect((await pools.createPool({ ...asked, requestId: 's2' })).uid).not.toBe(made.uid);
  await goes();
  expect((await pools.createPool(asked)).uid).toBe(made.uid);
  expect(await failure()).toBe('notFound');
});

test('a pool that is deleted gives its hosts back, and what they are stays', async () => {
  const { pools, hosts } = fixture;
  const { hosts: listed } = await pools.listPoolHosts({ parent: 'pools/web' });
  const out = listed.find(({ state }) => state === 'out')?.host ?? '';
  const other = listed.find(({ state }) => state !== 'out')?.host ?? '';
  const before = await hosts.getHost({ name: other });
  await pools.deletePool({ name: 'pools/web', reason: 'not needed' });
  // Its run has had no effect yet, and is called off.
  await expect
    .poll(async () => (await pools.listPools({})).pools.map(({ name }) => name))
    .toEqual([]);
  const { status } = await hosts.getHost({ name: other });
  expect([status?.claim, status?.state]).toEqual([undefined, before.status?.state]);
  expect((await hosts.getHost({ name: out })).status?.claim).toBeUndefined();
});

test('the deployment of a pool is checked as that of a host, and changed by field', async () => {
  const { pools } = fixture;
  const spec = { hosts: { labels: { pool: 'deployed' } }, image };
  const wrong = { firstBoot: { metaData: { 'a b': 'x' }, userData: '#cloud-config\n{' } };
  const rollout = { gate: { webhookUrl: 'ftp://hooks.example/' } };
  const poolId = 'deployed';
  const bad = pools.createPool({ poolId, pool: { spec: { ...spec, rollout, deploy: wrong } } });
  const fields = await violatedFields(bad);
  expect(fields).toContain('pool.spec.rollout.gate.webhook_url');
  expect(fields.some((field) => field.startsWith('pool.spec.deploy.first_boot'))).toBe(true);
  const deploy = { firstBoot: { userData: '#cloud-config\n' }, keepDisks: ['S1'] };
  await pools.createPool({ poolId, pool: { spec: { ...spec, deploy } } });
  const name = 'pools/deployed';
  const changed = await pools.updatePool({
    pool: { name, spec: { deploy: { grow: false } } },
    updateMask: { paths: ['spec.deploy.grow', 'spec.deploy.keep_disks'] },
  });
  expect(changed.spec?.deploy).toMatchObject({
    ...{ grow: false, keepDisks: [], firstBoot: { userData: '#cloud-config\n' } },
  });
});

test('a gate calls only a URL that the fleet allows; an earlier gate stays', async () => {
  const { pools, fleet } = fixture;
  const webhookUrl = 'https://hooks.example/rack/gate?token=1';
  const gated = { rollout: { gate: { webhookUrl } } };
  const spec = { hosts: { labels: { pool: 'gated' } }, image, ...gated };
  const asked = { poolId: 'gated', requestId: 'g1', pool: { spec } };
  const field = 'pool.spec.rollout.gate.webhook_url';
  expect(await violatedFields(pools.createPool(asked))).toEqual([field]);
  const { message } = await failureOf(pools.createPool(asked));
  expect(message).not.toContain('token');
  const updateMask = { paths: ['spec.templates.webhook_urls'] };
  const allow = (webhookUrls: string[]) =>
    fleet.updateFleet({ fleet: { spec: { templates: { webhookUrls } } }, updateMask });
  await allow(['https://hooks.example/rack/']);
  const { uid } = await pools.createPool(asked);
  await allow([]);
  expect((await pools.createPool(asked)).uid).toBe(uid);
  const name = 'pools/gated';
  await pools.updatePool({ pool: { name, spec: { historyLimit: 2 } } });
  const elsewhere = { rollout: { gate: { webhookUrl: 'https://hooks.example/else' } } };
  expect(await violatedFields(pools.updatePool({ pool: { name, spec: elsewhere } }))).toEqual([
    field,
  ]);
});

test('a gate that asks nobody is refused; one that its webhook is taken from is not', async () => {
  const { pools } = fixture;
  const hosts = { labels: { pool: 'nobody' } };
  const made = (gate: object) =>
    pools.createPool({ poolId: 'nobody', pool: { spec: { hosts, image, rollout: { gate } } } });
  const deadline = durationFromMs(8 * 3_600_000);
  expect(await violatedFields(made({ deadline }))).toEqual(['pool.spec.rollout.gate']);
  const { name } = await made({ deadline, approval: true });
  const update = (gate: object, ...paths: string[]) =>
    pools.updatePool({ pool: { name, spec: { rollout: { gate } } }, updateMask: { paths } });
  const path = 'spec.rollout.gate';
  const { spec } = await update({ approval: false }, `${path}.approval`);
  expect(spec?.rollout?.gate).toMatchObject({ approval: false, deadline });
  const other = { deadline: durationFromMs(3_600_000) };
  expect(await violatedFields(update(other, `${path}.deadline`))).toEqual([
    'pool.spec.rollout.gate',
  ]);
});

test('hosts that a pool names and that there are not are listed as missing', async () => {
  const { pools } = fixture;
  const spec = { hosts: { names: ['hosts/h1x', 'hosts/h2x'] }, image };
  const pins = { 'hosts/h3x': image };
  const { name } = await pools.createPool({ poolId: 'named', pool: { spec: { ...spec, pins } } });
  const { hosts } = await pools.listPoolHosts({ parent: name });
  expect(hosts.map(({ host, state }) => `${host} ${state}`)).toEqual(
    [1, 2, 3].map((n) => `hosts/h${n}x missing`),
  );
  await pools.deletePool({ name });
});

test('a change to a selector, a gate or pins changes only the part that is named', async () => {
  const { pools } = fixture;
  const name = 'pools/parts';
  const gate = { approval: true, deadline: durationFromMs(8 * 3_600_000) };
  const spec = { hosts: { labels: { pool: 'parts' }, rack: 'racks/r1' }, image };
  const pins = { 'hosts/h3': image, 'hosts/h4': image };
  await pools.createPool({ poolId: 'parts', pool: { spec: { ...spec, pins, rollout: { gate } } } });
  const update = async (changed: object, ...paths: string[]) =>
    (await pools.updatePool({ pool: { name, spec: changed }, updateMask: { paths } })).spec;
  const racked = await update({ hosts: { rack: 'racks/r2' } }, 'spec.hosts.rack');
  expect(racked?.hosts).toMatchObject({ labels: { pool: 'parts' }, rack: 'racks/r2' });
  const asked = await update({ rollout: { gate: {} } }, 'spec.rollout.gate.approval');
  expect(asked?.rollout?.gate).toMatchObject({ approval: false, deadline: gate.deadline });
  const pin = `registry.example/os@${other}`;
  const entries = ['spec.pins.`hosts/h3`', 'spec.pins.`hosts/h5`'];
  const pinned = await update({ pins: { 'hosts/h5': pin } }, ...entries);
  expect(pinned?.pins).toEqual({ 'hosts/h4': image, 'hosts/h5': pin });
  // Without a mask: the fields that are set.
  const unmasked = await update({ hosts: { rack: 'racks/r1' } });
  expect(unmasked?.hosts).toMatchObject({ labels: { pool: 'parts' }, rack: 'racks/r1' });
  for (const path of ['spec.hosts.`rack`', 'spec.pins.``', 'spec.deploy.`x`']) {
    expect(await violatedFields(update({}, path))).toContain('update_mask');
  }
  await pools.deletePool({ name });
});

test('listing pools reads no host that none of them selects', async () => {
  const { pools, store } = fixture;
  const spec = { hosts: { labels: { pool: 'nobody' } }, image };
  for (const poolId of ['many1', 'many2', 'many3'])
    await pools.createPool({ poolId, pool: { spec } });
  const [list, get] = [vi.spyOn(store, 'list'), vi.spyOn(store, 'get')];
  const readings = async () => {
    for (const each of [list, get]) each.mockClear();
    await pools.listPools({});
    const read = [...list.mock.calls, ...get.mock.calls].map(([key]) => key);
    return read.filter((key) => key === 'hosts' || key.startsWith('hosts.')).length;
  };
  // Other work reads hosts now and then.
  await expect.poll(readings).toBe(0);
  for (const each of [list, get]) each.mockRestore();
});

test('a selected host that is not ready is listed, and told where there is no other', async () => {
  const { pools, hosts } = fixture;
  await hosts.createHost({ hostId: 'h9', host: { labels: { pool: 'early' }, spec: specOf(9) } });
  const spec = { hosts: { labels: { pool: 'early' } }, image };
  const made = await pools.createPool({ poolId: 'early', pool: { spec } });
  const { message } = poolCondition(made.status, 'UpToDate') ?? {};
  expect(message).toBe('it holds no host; what it selects is not ready: hosts/h9 is new');
  const { hosts: listed } = await pools.listPoolHosts({ parent: made.name });
  expect(listed).toMatchObject([{ host: 'hosts/h9', state: 'notReady', message: 'it is new' }]);
});

test('a pool is looked at before it is made or changed, and nothing comes of looking', async () => {
  const { pools, hosts, store } = fixture;
  await hosts.createHost({ hostId: 'h8', host: { labels: { pool: 'ahead' }, spec: specOf(8) } });
  const spec = { hosts: { labels: { pool: 'ahead' } }, image };
  const pool = { name: 'pools/ahead', spec };
  const planned = await pools.planRollout({ pool });
  expect(planned).toMatchObject({ pool: 'pools/ahead', hosts: [], target: { image } });
  expect(planned.warnings).toEqual([
    'it would hold no host',
    'hosts/h8 is new: taken once it is ready',
  ]);
  expect((await store.get(storeKey('pools', 'ahead'))).kind).not.toBe('found');
  const wrong = { name: 'pools/ahead', spec: { ...spec, size: 0 } };
  expect(await violatedFields(pools.planRollout({ pool: wrong }))).toEqual(['pool.spec.size']);
  const tagged = { name: 'pools/ahead', spec: { ...spec, image: 'registry.example/os:1' } };
  const untold = await failureOf(pools.planRollout({ pool: tagged }));
  expect(untold.message).toContain('registry.example/os:1 could not be looked up');
  const { name, etag } = await pools.createPool({ poolId: 'ahead', pool });
  expect((await failureOf(pools.planRollout({ pool }))).kind).toBe('alreadyExists');
  const updateMask = { paths: ['spec.image'] };
  const next = { spec: { image: `registry.example/os@${other}` } };
  const changed = await pools.planRollout({ name, pool: next, updateMask });
  expect(changed.target?.digest).toBe(other);
  expect((await pools.getPool({ name })).etag).toBe(etag);
  const refused = pools.planRollout({ name, pool: next, updateMask: { paths: ['status'] } });
  expect(await violatedFields(refused)).toEqual(['update_mask']);
});
