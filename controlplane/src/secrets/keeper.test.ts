/** Replicas over one store in memory, on a clock that the test moves. */
import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { ApiFailure, asReplicaId, userActor, store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { afterImmediates, quietLog as log } from '@rackwright/platform/testing';
import { openMemoryStore, type StateStore } from '@rackwright/store';
import { beforeEach, describe, expect, test } from 'vitest';
import { StoreFollower } from '../following/index.ts';
import { SecretsKeeper } from './keeper.ts';
import type { KeySource } from './key-source.ts';
import { createSecrets, SecretError, type Secrets, secretsKeyId } from './secrets.ts';

const random = nodeRandom();
const keyOf = (fill: number) => new Uint8Array(32).fill(fill);
const [one, two, three] = [keyOf(1), keyOf(2), keyOf(3)] as const;
const id = secretsKeyId;
let store: StateStore;
let nowMs = 0;
const timers: (() => void)[] = [];
const clock: Clock = {
  nowMs: () => nowMs,
  suspendAwareMs: () => nowMs,
  after: (_delayMs, callback) => {
    timers.push(callback);
    return () => void timers.splice(timers.indexOf(callback), timers.includes(callback) ? 1 : 0);
  },
};

beforeEach(async () => {
  store = await openMemoryStore({ random });
  nowMs = Date.UTC(2026, 10, 22);
  timers.length = 0;
});

interface Replica {
  readonly keeper: SecretsKeeper;
  readonly secrets: Secrets;
  /** The keys of its source. */
  keys: readonly Uint8Array[];
  reads: number;
}

async function replica(name: string, keys: readonly Uint8Array[]): Promise<Replica> {
  const secrets = createSecrets(keys, random);
  const source: KeySource = {
    described: `the file of ${name}`,
    read: async () => {
      made.reads += 1;
      if (made.keys.length === 0) throw new SecretError(`the file of ${name} is missing`);
      return made.keys;
    },
  };
  const parts = {
    store,
    clock,
    random,
    log,
    secrets,
    source,
    replicaId: asReplicaId(name),
    isShared: true,
  };
  const following = new StoreFollower({ store, clock, log, retryDelayMs: 1_000 });
  const keeper = new SecretsKeeper({ ...parts, following, resyncIntervalMs: 60_000 });
  const made: Replica = { keeper, secrets, keys, reads: 0 };
  await keeper.start();
  return made;
}

async function add(secrets: Secrets, name: string): Promise<void> {
  const record = create(wire.CredentialRecordSchema, {
    credential: { name: `credentials/${name}`, version: 1n, username: 'root' },
    ...secrets.seal(`credentials/${name}`, 1n, `secret of ${name}`),
  });
  await store.put(`credentials.${name}`, toBinary(wire.CredentialRecordSchema, record), 'absent');
}

async function opened(secrets: Secrets, name: string): Promise<string> {
  const found = await store.get(`credentials.${name}`);
  if (found.kind === 'absent') throw new Error(`no ${name}`);
  return secrets.open(fromBinary(wire.CredentialRecordSchema, found.value)).password;
}

async function settled(): Promise<void> {
  await afterImmediates(50);
}

/** Runs everything that waits for time. */
async function passTime(ms: number): Promise<void> {
  nowMs += ms;
  for (const callback of timers.splice(0)) callback();
  await settled();
}

async function reasonOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (error instanceof ApiFailure) return `${error.error.reason}: ${error.error.message}`;
  throw new Error(`expected an ApiFailure, got ${String(error)}`);
}

describe('the key that seals', () => {
  test('is the first one of the first replica, and that of every other one', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [two, one]);
    expect([a.secrets.keyId, b.secrets.keyId]).toEqual([id(one), id(one)]);
    expect(await a.keeper.status()).toMatchObject({ keyId: id(one), nextKeyId: '', waitsFor: '' });
  });

  test('is asked for at the start: a replica without it does not start', async () => {
    await replica('a', [one]);
    const stranger = replica('b', [two]);
    await expect(stranger).rejects.toThrow(id(one));
    await expect(stranger).rejects.toThrow('the file of b');
  });

  test('changes to the new first one, and every secret with it, none opened', async () => {
    const a = await replica('a', [one]);
    for (const name of ['c1', 'c2', 'c3']) await add(a.secrets, name);
    a.keys = [two, one];
    const after = await a.keeper.rotate(userActor('admin'), 'r1');
    expect(after).toMatchObject({ keyId: id(two), nextKeyId: '', askedBy: 'user:admin' });
    expect(after.waitsFor).toBe('');
    expect(after.uses.map(({ keyId, records }) => [keyId, records])).toEqual([
      [id(two), 3],
      [id(one), 0],
    ]);
    // The old key can be removed.
    const later = createSecrets([two], random);
    expect(await opened(later, 'c2')).toBe('secret of c2');
  });

  test('takes the keys of certificate authorities along', async () => {
    const a = await replica('a', [one]);
    const plain = Buffer.from('the private key');
    const authorities = [1, 2].map(() => ({ sealedKey: a.secrets.sealBytes('x', plain) }));
    const trust = create(wire.TrustRecordSchema, { authorities });
    await store.put('trust.authorities', toBinary(wire.TrustRecordSchema, trust), 'absent');
    a.keys = [two];
    expect(await reasonOf(a.keeper.rotate(userActor('admin'), ''))).toContain('trust/authorities');
    a.keys = [two, one];
    expect((await a.keeper.rotate(userActor('admin'), '')).waitsFor).toBe('');
    const kept = await store.get('trust.authorities');
    if (kept.kind !== 'found') throw new Error('no record');
    const later = createSecrets([two], random);
    for (const { sealedKey } of fromBinary(wire.TrustRecordSchema, kept.value).authorities) {
      expect(Buffer.from(later.openBytes('x', sealedKey)).toString()).toBe('the private key');
    }
  });

  test('does not change twice for one request, nor when the source has nothing new', async () => {
    const a = await replica('a', [one]);
    a.keys = [two, one];
    await a.keeper.rotate(userActor('admin'), 'r1');
    const { reads } = a;
    a.keys = [three, two, one];
    expect((await a.keeper.rotate(userActor('admin'), 'r1')).keyId).toBe(id(two));
    expect(a.reads).toBe(reads);
    expect((await a.keeper.rotate(userActor('admin'), 'r2')).keyId).toBe(id(three));
    expect((await a.keeper.rotate(userActor('admin'), 'r3')).keyId).toBe(id(three));
  });

  test('is not given up while records need it', async () => {
    const a = await replica('a', [one]);
    await add(a.secrets, 'c1');
    a.keys = [two];
    const refusal = await reasonOf(a.keeper.rotate(userActor('admin'), ''));
    expect(refusal).toContain(`SECRETS_KEY_NEEDED: the file of a no longer holds`);
    expect(refusal).toContain(id(one));
    expect(await opened(a.secrets, 'c1')).toBe('secret of c1');
  });

  test('stays when the source cannot be read, whose words are told', async () => {
    const a = await replica('a', [one]);
    a.keys = [];
    const refusal = await reasonOf(a.keeper.rotate(userActor('admin'), ''));
    expect(refusal).toBe('SECRETS_KEY_UNREADABLE: the file of a is missing');
    expect(a.secrets.keyId).toBe(id(one));
  });
});

describe('with several replicas', () => {
  test('nothing is sealed with a key that another one does not have', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    await add(b.secrets, 'c1');
    a.keys = [two, one];
    const waiting = await a.keeper.rotate(userActor('admin'), '');
    expect(waiting).toMatchObject({ keyId: id(one), nextKeyId: id(two) });
    expect(waiting.waitsFor).toContain('replica b');
    expect(a.secrets.keyId).toBe(id(one));
    await settled();
    await passTime(2_000);
    expect((await a.keeper.status()).keyId).toBe(id(one));

    b.keys = [two, one];
    await b.keeper.rotate(userActor('admin'), '');
    await settled();
    await passTime(2_000);
    expect(await a.keeper.status()).toMatchObject({ keyId: id(two), nextKeyId: '', waitsFor: '' });
    expect([a.secrets.keyId, b.secrets.keyId]).toEqual([id(two), id(two)]);
    expect(await opened(createSecrets([two], random), 'c1')).toBe('secret of c1');
  });

  test('a replica that has the key by then reads it again by itself', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    await add(a.secrets, 'c1');
    a.keys = [two, one];
    b.keys = [two, one];
    await a.keeper.rotate(userActor('admin'), '');
    await settled();
    await passTime(2_000);
    expect((await a.keeper.status()).keyId).toBe(id(two));
    expect(b.secrets.keyId).toBe(id(two));
    expect(await opened(b.secrets, 'c1')).toBe('secret of c1');
  });

  test('a replica whose source gets the key late, or fails at first, reads on', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    await add(b.secrets, 'c1');
    a.keys = [two, one];
    b.keys = [];
    await a.keeper.rotate(userActor('admin'), '');
    await settled();
    for (const keys of [[], [one], [one]]) {
      b.keys = keys;
      await passTime(30_000);
      expect((await a.keeper.status()).keyId).toBe(id(one));
    }
    expect((await a.keeper.status()).waitsFor).toContain('b does not have key');
    b.keys = [two, one];
    const { reads } = b;
    for (let turn = 0; turn < 60; turn += 1) await passTime(2_000);
    expect(await a.keeper.status()).toMatchObject({ keyId: id(two), waitsFor: '' });
    expect(b.secrets.keyId).toBe(id(two));
    expect(b.reads).toBe(reads + 1);
    expect(await opened(createSecrets([two], random), 'c1')).toBe('secret of c1');
  });

  test('a replica that has no such key yet reads less and less often', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    a.keys = [two, one];
    await a.keeper.rotate(userActor('admin'), '');
    await settled();
    for (let turn = 0; turn < 150; turn += 1) await passTime(2_000);
    expect(b.reads).toBeGreaterThan(5);
    expect(b.reads).toBeLessThan(12);
  });

  test('a replica that was away during the change seals nothing until it has the key', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    const fitness: boolean[] = [];
    b.keeper.onFitness((isFit) => fitness.push(isFit));
    a.keys = [two, one];
    b.keys = [];
    const record = create(wire.SecretsKeyRecordSchema, { keyId: id(two) });
    const kept = await store.get('secrets.key');
    if (kept.kind !== 'found') throw new Error('no record');
    await store.put('secrets.key', toBinary(wire.SecretsKeyRecordSchema, record), kept.revision);
    await settled();
    expect(() => b.secrets.seal('credentials/c2', 1n, 'x')).toThrow('keeps no secret until');
    expect([b.keeper.isFit, b.secrets.keyIds]).toEqual([false, [id(one)]]);
    expect((await a.keeper.status()).waitsFor).toContain(`key ${id(two)}, which seals`);
    b.keys = [two, one];
    await passTime(2_000);
    await passTime(2_000);
    expect(b.secrets.keyId).toBe(id(two));
    await add(b.secrets, 'c2');
    expect(await opened(createSecrets([two], random), 'c2')).toBe('secret of c2');
    expect(fitness).toEqual([false, true]);
  });

  test('a replica that is gone without a word is waited for a bounded time', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    b.keeper.stop();
    a.keys = [two, one];
    await a.keeper.rotate(userActor('admin'), '');
    expect((await a.keeper.status()).waitsFor).toContain('replica b');
    await passTime(201_000);
    await passTime(2_000);
    expect((await a.keeper.status()).keyId).toBe(id(two));
    expect((await a.keeper.status()).replicas.map(({ replica: name }) => name)).toEqual(['a']);
  });

  test('every replica tells why another one cannot read its keys', async () => {
    const a = await replica('a', [one]);
    const b = await replica('b', [one]);
    a.keys = [two, one];
    b.keys = [];
    await a.keeper.rotate(userActor('admin'), '');
    await settled();
    expect((await a.keeper.status()).waitsFor).toContain('the file of b is missing');
  });
});

describe('a change that was cut short', () => {
  test('goes on at the next start, by whoever starts', async () => {
    const a = await replica('a', [one]);
    for (const name of ['c1', 'c2', 'c3']) await add(a.secrets, name);
    a.keeper.stop();
    const record = create(wire.SecretsKeyRecordSchema, { keyId: id(one), nextKeyId: id(two) });
    const kept = await store.get('secrets.key');
    if (kept.kind !== 'found') throw new Error('no record');
    await store.put('secrets.key', toBinary(wire.SecretsKeyRecordSchema, record), kept.revision);
    nowMs += 201_000;
    const b = await replica('b', [two, one]);
    const shown = await b.keeper.status();
    expect(shown).toMatchObject({ keyId: id(two), nextKeyId: '', waitsFor: '' });
    expect(await opened(createSecrets([two], random), 'c3')).toBe('secret of c3');
  });

  test('leaves what no replica can open as it is, and says whose it is', async () => {
    const lost = createSecrets([three], random);
    await add(lost, 'c9');
    const a = await replica('a', [one]);
    await add(a.secrets, 'c1');
    a.keys = [two, one];
    const shown = await a.keeper.rotate(userActor('admin'), '');
    expect(shown.keyId).toBe(id(two));
    expect(shown.waitsFor).toContain(`under key ${id(three)}, which no replica has`);
    expect(shown.waitsFor).toContain('credentials/c9');
    expect(await opened(lost, 'c9')).toBe('secret of c9');
  });

  test('takes a late secret along that a replica sealed with the old key', async () => {
    const a = await replica('a', [one]);
    a.keys = [two, one];
    await a.keeper.rotate(userActor('admin'), '');
    await add(createSecrets([one], random), 'late');
    expect((await a.keeper.status()).waitsFor).toContain('1 record is still under');
    await passTime(60_000);
    expect((await a.keeper.status()).waitsFor).toBe('');
  });
});
