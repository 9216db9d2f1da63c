/** The brakes through the operators' API: the fleet's record, and the limits of racks. */
import { clone, create } from '@bufbuild/protobuf';
import {
  asRevision,
  PowerMismatchPolicy,
  RestoredStoreSchema,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readRecord, writeRecord } from '../records/index.ts';
import { type Fixture, failureOf, startFixture, violatedFields } from '../services/rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture.stop());

describe('the fleet', () => {
  test('exists before any field is set, and changes field by field', async () => {
    const { fleet } = fixture;
    const first = await fleet.getFleet({});
    expect(first).toMatchObject({ name: 'fleet', spec: { pools: [] } });
    const spec = {
      wipeBudget: { hosts: 8, seconds: 600 },
      priorityOverrides: { 'bios.reset': 0 },
      pools: [{ pool: 'gpu', priorityOverrides: { 'firmware.update': 90 } }],
    };
    const set = await fleet.updateFleet({ fleet: { etag: first.etag, spec } });
    expect(set.spec).toMatchObject(spec);
    expect((await failureOf(fleet.updateFleet({ fleet: first }))).kind).toBe('aborted');
    const paths = ['spec.wipe_budget'];
    const changed = await fleet.updateFleet({ fleet: { spec: {} }, updateMask: { paths } });
    expect(changed.spec?.wipeBudget).toBeUndefined();
    expect(changed.spec?.pools).toMatchObject(spec.pools);
    expect(await fleet.getFleet({})).toEqual(changed);
  });

  test('lists internal addresses, and says of each entry what is wrong with it', async () => {
    const { fleet } = fixture;
    const internalAddresses = ['127.0.0.1:5000', '[::1]:5000', '169.254.0.0/16'];
    const updateMask = { paths: ['spec.internal_addresses'] };
    const changed = await fleet.updateFleet({ fleet: { spec: { internalAddresses } }, updateMask });
    expect(changed.spec?.internalAddresses).toEqual(internalAddresses);
    const wrong = { internalAddresses: ['localhost', '127.0.0.1', '0.0.0.0/0'] };
    expect(await violatedFields(fleet.updateFleet({ fleet: { spec: wrong } }))).toEqual([
      'fleet.spec.internal_addresses[0]',
      'fleet.spec.internal_addresses[2]',
    ]);
    const many = { internalAddresses: Array<string>(33).fill('127.0.0.1') };
    expect(await violatedFields(fleet.updateFleet({ fleet: { spec: many } }))).toEqual([
      'fleet.spec.internal_addresses',
    ]);
  });

  test('keeps what templates may reach, and says of each entry what is wrong with it', async () => {
    const { fleet, credentials } = fixture;
    const templates = {
      imageRepositories: ['registry.example.org/tools/*'],
      plainHttpRegistries: ['box:5000'],
      webhookUrls: ['https://hooks.example.org/'],
      registryCredentials: { 'registry.example.org': 'credentials/pull' },
    };
    expect((await fleet.updateFleet({ fleet: { spec: { templates } } })).spec).toMatchObject({
      templates,
    });
    const paths = ['spec.templates.webhook_urls'];
    const changed = await fleet.updateFleet({ fleet: { spec: {} }, updateMask: { paths } });
    expect(changed.spec?.templates).toMatchObject({ ...templates, webhookUrls: [] });
    const wrong = {
      imageRepositories: ['*'],
      plainHttpRegistries: ['box'],
      webhookUrls: ['hooks'],
      registryCredentials: { box: 'x' },
    };
    const bad = fleet.updateFleet({ fleet: { spec: { templates: wrong } } });
    expect(await violatedFields(bad)).toEqual([
      'fleet.spec.templates.image_repositories[0]',
      'fleet.spec.templates.plain_http_registries[0]',
      'fleet.spec.templates.webhook_urls[0]',
      'fleet.spec.templates.registry_credentials[0]',
    ]);
    const credential = { username: 'robot', password: 'sesame' };
    await credentials.createCredential({ credentialId: 'pull', credential });
    const refused = await failureOf(credentials.deleteCredential({ name: 'credentials/pull' }));
    expect(refused.message).toContain('is shown to registry.example.org by the fleet');
  });

  test.each([
    { registry: 'r.example', credential: 'credentials/pull' },
    { registry: 'r.example', mirrors: [{ registry: 'm.example', credential: 'credentials/pull' }] },
  ])('keeps the credential that a registry of images or its mirror is shown', async (named) => {
    const { fleet, credentials } = fixture;
    const credential = { username: 'robot', password: 'sesame' };
    await credentials.createCredential({ credentialId: 'pull', credential });
    const updateMask = { paths: ['spec.registries'] };
    await fleet.updateFleet({ fleet: { spec: { registries: [named] } }, updateMask });
    const refused = await failureOf(credentials.deleteCredential({ name: 'credentials/pull' }));
    expect(refused).toMatchObject({ reason: 'CREDENTIAL_IN_USE' });
    expect(refused.message).toContain('is shown to r.example for images of hosts');
    expect(refused.message).toContain('fleet registry set r.example --credential ID');
    await fleet.updateFleet({ fleet: { spec: { registries: [] } }, updateMask });
    await credentials.deleteCredential({ name: 'credentials/pull' });
  });

  test('is not changed by what is only to be validated', async () => {
    const { fleet } = fixture;
    const spec = { wipeBudget: { hosts: 8 } };
    const shown = await fleet.updateFleet({ fleet: { spec }, validateOnly: true });
    expect(shown.spec).toMatchObject(spec);
    expect((await fleet.getFleet({})).spec?.wipeBudget).toBeUndefined();
  });

  test('says of each field what is wrong with it', async () => {
    const { fleet } = fixture;
    const spec = {
      wipeBudget: { hosts: 20_000, seconds: 0 },
      priorityOverrides: { reset: 5 },
      pools: [{ pool: '' }, { pool: 'a' }, { pool: 'a', priorityOverrides: { 'a.b': 9_999 } }],
    };
    expect(await violatedFields(fleet.updateFleet({ fleet: { spec } }))).toEqual([
      'fleet.spec.priority_overrides["reset"]',
      'fleet.spec.wipe_budget.hosts',
      'fleet.spec.wipe_budget.seconds',
      'fleet.spec.pools[0].pool',
      'fleet.spec.pools[2].pool',
      'fleet.spec.pools[2].priority_overrides["a.b"]',
    ]);
  });

  test('is frozen by a person for a reason, once, and thawed once', async () => {
    const { fleet } = fixture;
    expect(await violatedFields(fleet.freezeFleet({}))).toEqual(['reason']);
    const request = { reason: 'a drill', requestId: 'f1' };
    const frozen = await fleet.freezeFleet(request);
    expect(frozen.status?.freeze).toMatchObject({ by: 'user:admin', reason: 'a drill' });
    expect((await fleet.freezeFleet({ reason: 'another' })).status?.freeze?.reason).toBe('a drill');
    expect((await fleet.thawFleet({ reason: 'over' })).status?.freeze).toBeUndefined();
    // The repeated request got its response, and freezes nothing again.
    expect((await fleet.freezeFleet(request)).status?.freeze).toBeUndefined();
    const refused = await failureOf(fleet.thawFleet({}));
    expect(refused.kind).toBe('failedPrecondition');
    expect(JSON.stringify(refused)).toContain('rackwright rack thaw');
  });
});

test('an update without a change does not write the fleet', async () => {
  const { fleet, store } = fixture;
  const spec = { wipeBudget: { hosts: 8, seconds: 600 } };
  await fleet.updateFleet({ fleet: { spec } });
  const frozen = await fleet.freezeFleet({ reason: 'a drill', requestId: 'f1' });
  const revision = await store.latestRevision();
  expect(await fleet.freezeFleet({ reason: 'another', requestId: 'f2' })).toEqual(frozen);
  expect(await fleet.updateFleet({ fleet: { spec } })).toEqual(frozen);
  expect(await store.latestRevision()).toBe(revision);
  await fleet.thawFleet({ reason: 'over' });
  expect(await store.latestRevision()).toBeGreaterThan(revision);
});

test('an update without a change does not write a rack', async () => {
  const { racks, store } = fixture;
  const name = 'racks/r1';
  const spec = { powerMismatch: PowerMismatchPolicy.ENFORCE };
  await racks.createRack({ rackId: 'r1' });
  await racks.updateRack({ rack: { name, spec } });
  const frozen = await racks.freezeRack({ name, reason: 'a drill', requestId: 'f1' });
  const revision = await store.latestRevision();
  expect(await racks.freezeRack({ name, reason: 'another', requestId: 'f2' })).toEqual(frozen);
  expect(await racks.updateRack({ rack: { name, spec } })).toEqual(frozen);
  expect(await store.latestRevision()).toBe(revision);
  await racks.thawRack({ name, reason: 'over' });
  expect(await store.latestRevision()).toBeGreaterThan(revision);
});

describe('a rack', () => {
  const name = 'racks/r1';
  const key = storeKey('racks', 'r1');

  test('takes limits and policies, and says what is wrong with them', async () => {
    const { racks } = fixture;
    await racks.createRack({ rackId: 'r1' });
    const spec = {
      limits: { runs: 4 },
      wipeBudget: { hosts: 2 },
      powerMismatch: PowerMismatchPolicy.ENFORCE,
      powerSyncSeconds: 0,
    };
    expect((await racks.updateRack({ rack: { name, spec } })).spec).toMatchObject(spec);
    const wrong = {
      limits: { runs: 0 },
      powerSyncSeconds: 5,
      powerMismatch: 9 as PowerMismatchPolicy,
    };
    expect(await violatedFields(racks.updateRack({ rack: { name, spec: wrong } }))).toEqual([
      'rack.spec.limits.runs',
      'rack.spec.power_mismatch',
      'rack.spec.power_sync_seconds',
    ]);
    const paths = ['spec.limits'];
    const rack = await racks.updateRack({ rack: { name }, updateMask: { paths } });
    expect(rack.spec?.limits).toBeUndefined();
    expect(rack.spec?.wipeBudget?.hosts).toBe(2);
  });

  test('is frozen for a reason only, and explains it', async () => {
    const { racks } = fixture;
    await racks.createRack({ rackId: 'r1' });
    expect(await violatedFields(racks.freezeRack({ name }))).toEqual(['reason']);
    await racks.freezeRack({ name, reason: 'a drill' });
    const { causes, unblock } = await racks.explainRack({ name });
    expect(causes.map(({ text }) => text)).toContainEqual(
      expect.stringMatching(/^racks\/r1 is frozen by user:admin since .*: a drill$/),
    );
    expect(unblock).toContain('rackwright rack thaw r1 --reason WHY');
  });

  test('has its restored store accepted once, and only where there is one', async () => {
    const { racks, store } = fixture;
    await racks.createRack({ rackId: 'r1' });
    const none = await failureOf(racks.acceptRestoredStore({ name, reason: 'x' }));
    expect(none.kind).toBe('failedPrecondition');
    expect(JSON.stringify(none)).toContain('nothing to accept');
    const notFrozen = await failureOf(racks.thawRack({ name }));
    expect(JSON.stringify(notFrozen)).toContain('rackwright fleet thaw');
    const kept = await readRecord(store, wire.RackRecordSchema, key);
    const record = clone(wire.RackRecordSchema, kept?.record ?? create(wire.RackRecordSchema));
    const restoredStore = create(RestoredStoreSchema, {
      seenRevision: asRevision(900),
      revision: asRevision(40),
    });
    if (record.rack?.status === undefined) throw new Error('the rack has no status');
    record.rack.status.restoredStore = restoredStore;
    const writer = { store, random: nodeRandom() };
    await writeRecord(writer, wire.RackRecordSchema, key, record, kept?.revision ?? 'absent');
    expect((await racks.explainRack({ name })).unblock.join('\n')).toContain(
      'rackwright rack accept-restored-store r1',
    );
    const request = { name, reason: 'seen to', requestId: 'a1' };
    expect((await racks.acceptRestoredStore(request)).status?.restoredStore).toBeUndefined();
    expect((await racks.acceptRestoredStore(request)).status?.restoredStore).toBeUndefined();
    const after = await readRecord(store, wire.RackRecordSchema, key);
    expect(after?.record.acceptedStore).toMatchObject({
      incarnation: store.incarnation,
      revision: 40n,
      by: 'user:admin',
    });
    expect((await failureOf(racks.acceptRestoredStore({ name }))).kind).toBe('failedPrecondition');
  });
});
