import { DeletionMode, HoldScope, Role } from '@rackwright/messages';
import { nodeClock } from '@rackwright/platform/node';
import { operatorClients } from '@rackwright/rpc';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { addSide, type Names, specOf, tokenFor } from './access.fixture.ts';
import { type Fixture, failureOf, startFixture } from './rpc.fixture.ts';

let fixture: Fixture;
let aa: Names;
let zz: Names;
let ofRack: ReturnType<typeof operatorClients>;
let ofPool: ReturnType<typeof operatorClients>;

beforeAll(async () => {
  fixture = await startFixture();
  aa = await addSide(fixture, 'aa');
  zz = await addSide(fixture, 'zz');
  const as = async (tokenId: string, scope: { racks?: string[]; pools?: string[] }) =>
    operatorClients(fixture.channel, await tokenFor(fixture, tokenId, Role.OPERATOR, scope));
  ofRack = await as('rack-a', { racks: [aa.rack] });
  ofPool = await as('pool-a', { pools: [aa.pool] });
});

afterAll(() => fixture.stop());

const plain = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value);

test('resources out of scope and missing ones are refused in the same words', async () => {
  const there = await failureOf(ofRack.hosts.getHost({ name: zz.host }));
  const nowhere = await failureOf(ofRack.hosts.getHost({ name: 'hosts/yy-host' }));
  expect(there.reason).toBe('NOT_FOUND_IN_SCOPE');
  expect(there.message).toContain('in the scope of token:rack-a (racks/aa-rack)');
  expect(there.message.replace('zz-host', 'yy-host')).toBe(nowhere.message);
  expect(there.kind).toBe(nowhere.kind);
  for (const name of ['racks/zz-rack', 'racks/yy-rack']) {
    const { reason, message } = await failureOf(
      ofRack.hosts.createHost({
        hostId: 'new',
        host: { spec: { ...specOf('aa', 7), rack: name } },
      }),
    );
    expect([reason, message]).toEqual(['OUT_OF_SCOPE', expect.stringContaining(name)]);
  }
});

test('lists and their page tokens name nothing of elsewhere, in any order of names', async () => {
  const { hosts } = fixture;
  for (const [side, id] of [
    ['zz', 'b-zz'],
    ['aa', 'c-aa'],
    ['zz', 'd-zz'],
    ['aa', 'e-aa'],
  ] as const) {
    const n = id.charCodeAt(0) - 96;
    const labels = { pool: `${side}-pool` };
    await hosts.createHost({ hostId: id, host: { spec: specOf(side, n), labels } });
  }
  for (const caller of [ofRack, ofPool]) {
    const seen: string[] = [];
    let pageToken = '';
    do {
      const page = await caller.hosts.listHosts({ pageSize: 1, pageToken });
      seen.push(...page.hosts.map(({ name }) => name));
      pageToken = page.nextPageToken;
      expect(Buffer.from(pageToken, 'base64url').toString()).not.toContain('zz');
    } while (pageToken !== '');
    expect(seen).toEqual(['hosts/aa-host', 'hosts/c-aa', 'hosts/e-aa']);
    const { workflows } = await caller.workflows.listWorkflows({ parent: 'hosts/-' });
    expect(workflows.map(({ name }) => name)).toEqual([aa.workflow]);
  }
});

test('a watch tells what leaves the scope as gone, and nothing of the rest', async () => {
  const watch = ofPool.hosts.watchHosts({})[Symbol.asyncIterator]();
  const next = async () => {
    const { value } = await watch.next();
    return `${value?.kind} ${value?.host?.name ?? ''}`;
  };
  const told = [await next()];
  while (!told.at(-1)?.startsWith('3')) told.push(await next());
  expect(told.join()).not.toContain('zz');
  const { hosts } = fixture;
  const hold = { scope: HoldScope.POWER, reason: 'seen by nobody' };
  await hosts.holdHost({ name: zz.host, ...hold });
  const updateMask = { paths: ['labels'] };
  const move = (pool: string) =>
    hosts.updateHost({ host: { name: 'hosts/c-aa', labels: { pool } }, updateMask });
  await move('zz-pool');
  await hosts.holdHost({ name: 'hosts/c-aa', ...hold });
  await move('aa-pool');
  let last = await next();
  while (last === '1 hosts/c-aa' || last === '1 hosts/aa-host') last = await next();
  expect(last).toBe('2 hosts/c-aa');
  last = await next();
  while (last.startsWith('1 hosts/aa-host') || last.startsWith('1 hosts/e-aa')) last = await next();
  expect(last).toBe('1 hosts/c-aa');
  await watch.return?.();
  // Its history has only the changes made while it was in the pool.
  const { revisions } = await ofPool.hosts.listHostRevisions({ name: 'hosts/c-aa' });
  expect(JSON.stringify(revisions, plain)).not.toContain('zz');
  expect(revisions.length).toBeGreaterThan(0);
});

test('a caller with only one side in scope moves no host out of it or into it', async () => {
  const updateMask = { paths: ['labels'] };
  const out = ofPool.hosts.updateHost({
    host: { name: aa.host, labels: { pool: 'x' } },
    updateMask,
  });
  expect(await failureOf(out)).toMatchObject({
    reason: 'OUT_OF_SCOPE',
    message: expect.stringContaining('host.labels[pool] names the pool x'),
  });
  const into = ofPool.hosts.updateHost({
    host: { name: zz.host, labels: { pool: aa.pool } },
    updateMask,
  });
  expect(await failureOf(into)).toMatchObject({ reason: 'NOT_FOUND_IN_SCOPE' });
  const kept = ofPool.hosts.updateHost({
    host: { name: aa.host, labels: { pool: aa.pool, site: 'berlin' } },
    updateMask,
  });
  expect((await kept).labels['site']).toBe('berlin');
  // A rack's operator may name pools as it likes.
  const ofTheRack = await ofRack.hosts.updateHost({
    host: { name: 'hosts/e-aa', labels: { pool: 'mine' } },
    updateMask,
  });
  expect(ofTheRack.labels['pool']).toBe('mine');
});

test('a password of elsewhere is sent to no BMC of the caller’s choice', async () => {
  const spec = { ...specOf('aa', 8), bmc: { address: '192.0.1.8', credential: zz.credential } };
  const theft = ofRack.hosts.createHost({ hostId: 'thief', host: { spec } });
  expect(await failureOf(theft)).toMatchObject({
    reason: 'OUT_OF_SCOPE',
    message: expect.stringContaining(`host.spec.bmc.credential names ${zz.credential}`),
  });
  const turned = ofRack.hosts.updateHost({
    host: { name: aa.host, spec: { bmc: { credential: zz.credential } } },
    updateMask: { paths: ['spec.bmc.credential'] },
  });
  expect(await failureOf(turned)).toMatchObject({ reason: 'OUT_OF_SCOPE' });
  const { credentials } = await ofRack.credentials.listCredentials({});
  expect(credentials.map(({ name }) => name)).toEqual([aa.credential]);
});

test('a refusal names no holder of elsewhere', async () => {
  const { bootMacs } = specOf('zz');
  const spec = { ...specOf('aa', 8), bootMacs };
  const failure = await failureOf(ofRack.hosts.createHost({ hostId: 'twin', host: { spec } }));
  expect(failure.kind).toBe('alreadyExists');
  expect(JSON.stringify(failure)).not.toContain('zz');
  expect(failure.message).toContain('something out of your scope');
});

test('a request id of somebody else answers nothing of elsewhere', async () => {
  const labels = { pool: zz.pool };
  const requestId = 'known-to-both';
  const { hosts, discovery } = fixture;
  await hosts.createHost({ hostId: 'theirs', host: { spec: specOf('zz', 6), labels }, requestId });
  const mine = { spec: specOf('aa', 6), labels: { pool: aa.pool } };
  const taken = { kind: 'alreadyExists', message: 'something out of your scope exists already.' };
  const again = ofRack.hosts.createHost({ hostId: 'theirs', host: mine, requestId });
  expect(await failureOf(again)).toMatchObject({ ...taken, violations: [] });
  const accepted = ofRack.discovery.acceptDiscoveredMachine({
    name: aa.machine,
    hostId: 'theirs',
    host: mine,
    requestId,
  });
  expect(await failureOf(accepted)).toMatchObject(taken);
  const line = (side: 'aa' | 'zz') => ({
    spec: { ...specOf(side, 12), bootMacs: [] },
    labels: { pool: `${side}-pool` },
    match: { serial: `${side}-12` },
  });
  await discovery.createExpectedHost({
    expectedHostId: 'theirs',
    expectedHost: line('zz'),
    requestId,
  });
  const lined = ofRack.discovery.createExpectedHost({
    expectedHostId: 'theirs',
    expectedHost: line('aa'),
    requestId,
  });
  expect(await failureOf(lined)).toMatchObject(taken);
});

test('a batch takes hosts in scope alone, and is seen by who sees them all', async () => {
  const template = 'templates/rackwright-diagnose';
  const dry = await ofPool.workflowBatches.createWorkflowBatch({
    workflowBatchId: 'all',
    workflowBatch: { spec: { template, hosts: { labels: { pool: aa.pool } } } },
    validateOnly: true,
  });
  const chosen = dry.status?.hosts.map(({ host }) => host);
  expect(chosen).toContain(aa.host);
  expect(chosen?.join()).not.toContain('zz');
  const elsewhere = ofPool.workflowBatches.createWorkflowBatch({
    workflowBatchId: 'all',
    workflowBatch: { spec: { template, hosts: { labels: { pool: zz.pool } } } },
    validateOnly: true,
  });
  expect((await failureOf(elsewhere)).message).toContain('selects no host');
  await fixture.workflowBatches.createWorkflowBatch({
    workflowBatchId: 'mixed',
    workflowBatch: { spec: { template, hosts: { names: [aa.host, zz.host] } } },
    requestId: 'same',
  });
  const { workflowBatches } = await ofRack.workflowBatches.listWorkflowBatches({});
  expect(workflowBatches.map(({ name }) => name)).toEqual([aa.batch]);
  const again = ofRack.workflowBatches.createWorkflowBatch({
    workflowBatchId: 'mixed',
    workflowBatch: { spec: { template, hosts: { names: [aa.host] } } },
    requestId: 'same',
  });
  expect(await failureOf(again)).toMatchObject({ reason: 'NOT_FOUND_IN_SCOPE' });
});

test('the audit stream shows what was asked of hosts and racks in scope', async () => {
  await ofRack.hosts.holdHost({ name: aa.host, scope: HoldScope.POWER, reason: 'mine' });
  await failureOf(ofRack.hosts.holdHost({ name: zz.host, scope: HoldScope.POWER, reason: 'no' }));
  const { records } = await ofRack.audit.listAuditRecords({});
  // For refusals, what was requested; also by the other token, which would get the same.
  const texts = JSON.stringify(records, plain);
  expect(texts).not.toContain('zz');
  expect(texts).toContain('names something out of your scope, which is not in the scope of');
  expect(records).toContainEqual(
    expect.objectContaining({ actor: 'token:rack-a', resource: aa.host, outcome: 'ok' }),
  );
  expect(records).toContainEqual(expect.objectContaining({ resource: aa.rack }));
  const all = await refusalsSoon();
  expect(all).toContainEqual(expect.objectContaining({ kind: 'refusal', resource: zz.host }));
});

async function refusalsSoon() {
  for (let round = 0; ; round += 1) {
    const search = { actor: 'token:rack-a', resource: zz.host };
    const { records } = await fixture.audit.listAuditRecords(search);
    if (records.length > 1 || round > 100) return records;
    await new Promise<void>((resolve) => nodeClock().after(10, resolve));
  }
}

test('fleet-wide methods are only for callers without a scope', async () => {
  const expected = { kind: 'permissionDenied', reason: 'SCOPE_TOO_SMALL' };
  const template = { source: 'steps: []' };
  const change = ofRack.templates.createTemplate({ templateId: 'mine', template });
  expect(await failureOf(change)).toMatchObject(expected);
  expect((await ofRack.fleet.getFleet({})).name).toBe('fleet');
});

test('a draft of a pool is planned for operators, over hosts of their scope alone', async () => {
  const image = `registry.example/os@sha256:${'ab'.repeat(32)}`;
  const pool = { name: 'pools/ahead', spec: { image, hosts: { names: [aa.host, zz.host] } } };
  const wall = operatorClients(fixture.channel, await tokenFor(fixture, 'wall', Role.VIEWER));
  expect((await failureOf(wall.pools.planRollout({ pool }))).kind).toBe('permissionDenied');
  await fixture.fleet.updateFleet({
    fleet: { spec: { registries: [{ registry: 'registry.example' }] } },
    updateMask: { paths: ['spec.registries'] },
  });
  const told = JSON.stringify(await ofRack.pools.planRollout({ pool }), plain);
  expect(told).toContain(aa.host);
  expect(told).not.toContain(zz.host);
  expect(JSON.stringify(await fixture.pools.planRollout({ pool }), plain)).toContain(zz.host);
});

test('a repeated request about a host that is gone is answered in its scope alone', async () => {
  const spec = specOf('aa', 9);
  const made = { hostId: 'leaves', host: { spec, labels: { pool: aa.pool } } };
  const { name } = await ofRack.hosts.createHost(made);
  const chief = operatorClients(
    fixture.channel,
    await tokenFor(fixture, 'chief-a', Role.ADMIN, { racks: [aa.rack] }),
  );
  const call = { name, mode: DeletionMode.FORCE, reason: 'burnt', requestId: 'gone' };
  const first = await chief.hosts.deleteHost(call);
  for (let round = 0; round < 200; round += 1) {
    const rest = await fixture.store.get('hosts.leaves');
    if (rest.kind === 'absent') break;
    await new Promise<void>((resolve) => nodeClock().after(10, resolve));
  }
  expect((await fixture.store.get('hosts.leaves')).kind).toBe('absent');
  const again = await chief.hosts.deleteHost(call);
  expect(again.uid).toBe(first.uid);
  const { revisions } = await ofRack.hosts.listHostRevisions({ name });
  expect(revisions.length).toBeGreaterThan(1);
  const elsewhere = operatorClients(
    fixture.channel,
    await tokenFor(fixture, 'rack-z', Role.ADMIN, { racks: [zz.rack] }),
  );
  expect(await failureOf(elsewhere.hosts.listHostRevisions({ name }))).toMatchObject({
    reason: 'NOT_FOUND_IN_SCOPE',
  });
});
