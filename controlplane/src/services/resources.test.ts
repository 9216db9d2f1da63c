import { create } from '@bufbuild/protobuf';
import {
  WatchRacksResponse_Kind as Kind,
  parseJoinToken,
  store as wire,
} from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { storeKey } from '@rackwright/store';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readRecord, writeRecord } from '../records/index.ts';
import {
  addSurroundings,
  type Fixture,
  failureOf,
  specOf,
  startFixture,
  violatedFields,
} from './rpc.fixture.ts';

let fixture: Fixture;

beforeEach(async () => {
  fixture = await startFixture();
});

afterEach(() => fixture.stop());

describe('racks', () => {
  test('are created, read, listed, changed and deleted', async () => {
    const { racks } = fixture;
    const rack = { labels: { site: 'a' }, spec: { displayName: 'Hall 1' } };
    const created = await racks.createRack({ rackId: 'r1', rack });
    expect(created).toMatchObject({ name: 'racks/r1', spec: { displayName: 'Hall 1' } });
    expect(created.status?.agentConnected).toBe(false);
    expect(await racks.getRack({ name: 'racks/r1' })).toEqual(created);
    expect((await failureOf(racks.createRack({ rackId: 'r1' }))).kind).toBe('alreadyExists');
    const updated = await racks.updateRack({
      rack: { name: 'racks/r1', etag: created.etag, spec: { displayName: 'Hall 2' } },
      updateMask: { paths: ['spec.display_name'] },
    });
    expect(updated).toMatchObject({ labels: { site: 'a' }, spec: { displayName: 'Hall 2' } });
    const stale = { name: 'racks/r1', etag: created.etag };
    expect((await failureOf(racks.updateRack({ rack: stale }))).kind).toBe('aborted');
    expect((await failureOf(racks.deleteRack(stale))).kind).toBe('aborted');
    expect((await racks.listRacks({})).racks).toHaveLength(1);
    await racks.deleteRack({ name: 'racks/r1', etag: updated.etag });
    expect((await racks.listRacks({})).racks).toEqual([]);
    expect((await failureOf(racks.getRack({ name: 'racks/r1' }))).kind).toBe('notFound');
  });

  test('racks in requests to validate only are not kept', async () => {
    const { racks } = fixture;
    await racks.createRack({ rackId: 'r1', validateOnly: true });
    expect((await racks.listRacks({})).racks).toEqual([]);
    const bad = racks.createRack({ rackId: 'R', rack: { spec: { displayName: 'a\nb' } } });
    expect(await violatedFields(bad)).toEqual(['rack_id', 'rack.spec.display_name']);
  });

  test('racks with hosts cannot be deleted, and the refusal names them', async () => {
    await addSurroundings(fixture);
    await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
    const error = await failureOf(fixture.racks.deleteRack({ name: 'racks/r1' }));
    expect(error).toMatchObject({ kind: 'failedPrecondition', reason: 'RACK_HAS_HOSTS' });
    expect(error.message).toContain('hosts/h1');
  });

  test('are watched from the beginning, then as they change', async () => {
    const { racks } = fixture;
    await racks.createRack({ rackId: 'r1' });
    const seen: [Kind, string][] = [];
    for await (const { kind, rack } of racks.watchRacks({})) {
      seen.push([kind, rack?.name ?? '']);
      if (kind === Kind.SYNCED) await racks.createRack({ rackId: 'r2' });
      if (rack?.name === 'racks/r2') await racks.deleteRack({ name: 'racks/r1' });
      if (kind === Kind.DELETED) break;
    }
    expect(seen).toEqual([
      [Kind.UPDATED, 'racks/r1'],
      [Kind.SYNCED, ''],
      [Kind.UPDATED, 'racks/r2'],
      [Kind.DELETED, 'racks/r1'],
    ]);
  });

  test('are watched on from where an earlier watch has come to', async () => {
    const { racks } = fixture;
    await racks.createRack({ rackId: 'r1' });
    let position = '';
    for await (const told of racks.watchRacks({})) {
      position = told.position;
      if (told.kind === Kind.SYNCED) break;
    }
    await racks.createRack({ rackId: 'r2' });
    await racks.deleteRack({ name: 'racks/r1' });
    const seen: [Kind, string][] = [];
    for await (const { kind, rack } of racks.watchRacks({ position })) {
      seen.push([kind, rack?.name ?? '']);
      if (kind === Kind.DELETED) break;
    }
    expect(seen).toEqual([
      [Kind.UPDATED, 'racks/r2'],
      [Kind.DELETED, 'racks/r1'],
    ]);
  });

  test('give join tokens that carry the fingerprint of the CA', async () => {
    const { racks, controlPlane } = fixture;
    await racks.createRack({ rackId: 'r1' });
    const { token, caSha256, expireTime } = await racks.createJoinToken({ rack: 'racks/r1' });
    expect(parseJoinToken(token)?.caSha256).toBe(controlPlane.identity.caSha256);
    expect(caSha256).toBe(controlPlane.identity.caSha256);
    expect(expireTime).toBeDefined();
    expect(JSON.stringify(fixture.lines)).not.toContain(token.split('.').at(-1));
    expect(await violatedFields(racks.createJoinToken({ rack: 'r1' }))).toEqual(['rack']);
  });
});

describe('credentials', () => {
  const secret = 'correct horse battery';

  test('go in and never come out', async () => {
    const { credentials, store } = fixture;
    const credential = { username: 'root', password: secret };
    const created = await credentials.createCredential({ credentialId: 'c1', credential });
    expect(created).toMatchObject({ username: 'root', password: '' });
    expect((await credentials.getCredential({ name: created.name })).password).toBe('');
    const listed = (await credentials.listCredentials({})).credentials;
    expect(listed.map(({ password }) => password)).toEqual(['']);
    const found = await store.get('credentials.c1');
    expect(Buffer.from(found.kind === 'found' ? found.value : []).includes(secret)).toBe(false);
    expect(JSON.stringify(fixture.lines)).not.toContain(secret);
  });

  test('take two changes at once, one after the other, where neither names an etag', async () => {
    const { credentials } = fixture;
    const credential = { username: 'root', password: secret };
    const { name, version } = await credentials.createCredential({
      credentialId: 'c1',
      credential,
    });
    const change = (password: string) =>
      credentials.updateCredential({
        credential: { name, password },
        updateMask: { paths: ['password'] },
      });
    const changed = await Promise.all([change('one'), change('two')]);
    expect(new Set(changed.map((each) => each.version))).toEqual(
      new Set([version + 1n, version + 2n]),
    );
  });

  test('open to the newest password and user name, under a version that rises', async () => {
    const { credentials, store, controlPlane } = fixture;
    const open = async () => {
      const kept = await readRecord(store, wire.CredentialRecordSchema, 'credentials.c1');
      return kept && controlPlane.identity.secrets.open(kept.record);
    };
    const credential = { username: 'root', password: secret };
    const { name, version } = await credentials.createCredential({
      credentialId: 'c1',
      credential,
    });
    expect(await open()).toEqual(credential);
    const renamed = await credentials.updateCredential({
      credential: { name, username: 'admin' },
      updateMask: { paths: ['username'] },
    });
    expect(renamed.version).toBe(version + 1n);
    expect(await open()).toEqual({ username: 'admin', password: secret });
    await credentials.updateCredential({ credential: { name, password: 'other' } });
    expect(await open()).toEqual({ username: 'admin', password: 'other' });
  });

  test('credentials recreated under an old name have a higher version than before', async () => {
    const { credentials } = fixture;
    const credential = { username: 'root', password: secret };
    const { name } = await credentials.createCredential({ credentialId: 'c1', credential });
    for (const password of ['b', 'c', 'd']) {
      await credentials.updateCredential({ credential: { name, password } });
    }
    const tried = { credential: { name, username: 'admin' }, validateOnly: true };
    expect((await credentials.updateCredential(tried)).username).toBe('admin');
    expect((await credentials.getCredential({ name })).username).toBe('root');
    const { version } = await credentials.deleteCredential({ name });
    const anew = await credentials.createCredential({ credentialId: 'c1', credential });
    expect(anew.version).toBeGreaterThan(version);
  });

  test('are not taken while the key that seals is not here', async () => {
    const { credentials, controlPlane } = fixture;
    const { secrets } = controlPlane.identity;
    const credential = { username: 'root', password: secret };
    const { name } = await credentials.createCredential({ credentialId: 'c1', credential });
    const { keyId } = secrets;
    secrets.sealWith('0123456789abcdef');
    const missing = { kind: 'unavailable', reason: 'SECRETS_KEY_MISSING' };
    const create = credentials.createCredential({ credentialId: 'c2', credential });
    expect(await failureOf(create)).toMatchObject(missing);
    const update = credentials.updateCredential({ credential: { name, password: 'b' } });
    expect(await failureOf(update)).toMatchObject(missing);
    secrets.sealWith(keyId);
    await credentials.createCredential({ credentialId: 'c2', credential });
  });

  test('are checked without repeating the password', async () => {
    const { credentials } = fixture;
    const credential = { password: `${secret}\n` };
    const error = await failureOf(credentials.createCredential({ credentialId: 'C', credential }));
    expect('violations' in error && error.violations.map(({ field }) => field)).toEqual([
      'credential_id',
      'credential.username',
      'credential.password',
    ]);
    expect(JSON.stringify(error)).not.toContain(secret);
    const mask = credentials.updateCredential({
      credential: { name: 'credentials/none' },
      updateMask: { paths: ['version'] },
    });
    expect((await failureOf(mask)).kind).toBe('notFound');
  });

  test('credentials that a host uses cannot be deleted', async () => {
    await addSurroundings(fixture);
    await fixture.hosts.createHost({ hostId: 'h1', host: { spec: specOf(1) } });
    const { credentials } = fixture;
    const error = await failureOf(credentials.deleteCredential({ name: 'credentials/bmc' }));
    expect(error).toMatchObject({ reason: 'CREDENTIAL_IN_USE' });
    const spare = { username: 'a', password: 'b' };
    await credentials.createCredential({ credentialId: 'spare', credential: spare });
    await credentials.deleteCredential({ name: 'credentials/spare' });
    expect((await credentials.listCredentials({})).credentials).toHaveLength(1);
  });
});

describe('erasure certificates', () => {
  test('are served exactly as they were signed, also when we cannot read them', async () => {
    const { erasures, store } = fixture;
    const statement = new TextEncoder().encode('{"format":"of a later version"}');
    const record = create(wire.CertificateRecordSchema, {
      statement,
      signature: new Uint8Array([1, 2, 3]),
      host: 'hosts/h1',
    });
    const key = storeKey('erasureCertificates', 'abc', '1-2-3-1-0123abcd');
    const writer = { store, random: nodeRandom() };
    await writeRecord(writer, wire.CertificateRecordSchema, key, record, 'absent');
    const owner = storeKey('erasureOwners', 'h1', 'abc');
    await store.put(owner, new Uint8Array(), 'absent');
    const name = 'erasureCertificates/abc-1-2-3-1-0123abcd';
    const found = await erasures.getErasureCertificate({ name });
    expect(Buffer.from(found.statement).equals(statement)).toBe(true);
    expect(found).toMatchObject({ host: 'hosts/h1', level: '', deviceSerial: '' });
    const ofHost = await erasures.listErasureCertificates({ host: 'hosts/h1' });
    expect(ofHost.erasureCertificates).toEqual([found]);
    const ofOther = await erasures.listErasureCertificates({ host: 'hosts/h2' });
    expect(ofOther.erasureCertificates).toEqual([]);
    const missing = erasures.getErasureCertificate({
      name: 'erasureCertificates/abc-1-2-3-2-0123abcd',
    });
    expect((await failureOf(missing)).kind).toBe('notFound');
  });

  test('come with the keys that verify them', async () => {
    const { erasurePublicKeyPem, caCertificatePem } = await fixture.erasures.getTrust({});
    expect(erasurePublicKeyPem).toBe(fixture.controlPlane.identity.erasure.publicKeyPem);
    expect(caCertificatePem).toBe(fixture.controlPlane.identity.caCertificatePem);
  });
});
