import { createCipheriv } from 'node:crypto';
import { clone, create } from '@bufbuild/protobuf';
import { store } from '@rackwright/messages';
import { nodeRandom } from '@rackwright/platform/node';
import { describe, expect, test } from 'vitest';
import { createSecrets, SecretError, secretsKeyId } from './secrets.ts';

const random = nodeRandom();
const keyOf = (fill: number) => new Uint8Array(32).fill(fill);
const secrets = createSecrets([keyOf(7)], random);

function recordOf(version: bigint, password: string): store.CredentialRecord {
  const name = 'credentials/c1';
  const credential = { name, version, username: 'root' };
  return create(store.CredentialRecordSchema, {
    credential,
    ...secrets.seal(name, version, password),
  });
}

/** As records were before data keys existed. */
function directRecord(key: Uint8Array, password: string): store.CredentialRecord {
  const nonce = random.bytes(12);
  const cipher = createCipheriv('aes-256-gcm', key, nonce);
  cipher.setAAD(Buffer.from('credentials/c1\u00001'));
  const text = Buffer.concat([cipher.update(password, 'utf8'), cipher.final()]);
  return create(store.CredentialRecordSchema, {
    credential: { name: 'credentials/c1', version: 1n, username: 'root' },
    sealedPassword: new Uint8Array(Buffer.concat([nonce, text, cipher.getAuthTag()])),
    keyId: secretsKeyId(key),
  });
}

describe('secrets', () => {
  test('open to what was sealed', () => {
    for (const password of ['', 'calvin', 'ünïcödé ✓', 'x'.repeat(1_000)]) {
      const record = recordOf(3n, password);
      expect(secrets.open(record)).toEqual({ username: 'root', password });
      const bytes = Buffer.from(record.sealed?.ciphertext ?? []);
      if (password.length > 3) expect(bytes.includes(password)).toBe(false);
    }
  });

  test('have a data key of their own each', () => {
    const [one, two] = [recordOf(1n, 'a').sealed, recordOf(1n, 'a').sealed];
    expect(one?.ciphertext).not.toEqual(two?.ciphertext);
    expect(one?.sealedDataKey).not.toEqual(two?.sealedDataKey);
    const mixed = recordOf(1n, 'a');
    if (mixed.sealed && two) mixed.sealed.sealedDataKey = two.sealedDataKey;
    expect(() => secrets.open(mixed)).toThrow(SecretError);
  });

  test('do not open under another name or version, or when a byte was changed', () => {
    const renamed = recordOf(1n, 'a');
    if (renamed.credential) renamed.credential.name = 'credentials/c2';
    expect(() => secrets.open(renamed)).toThrow('credentials/c2 does not open');
    const replayed = recordOf(1n, 'a');
    if (replayed.credential) replayed.credential.version = 2n;
    expect(() => secrets.open(replayed)).toThrow(SecretError);
    const whole = recordOf(1n, 'a');
    for (const field of ['ciphertext', 'sealedDataKey'] as const) {
      const bytes = whole.sealed?.[field] ?? new Uint8Array();
      for (let index = 0; index < bytes.length; index += 1) {
        const changed = clone(store.CredentialRecordSchema, whole);
        const cut = clone(store.CredentialRecordSchema, whole);
        if (changed.sealed) changed.sealed[field][index] = (bytes[index] ?? 0) ^ 1;
        if (cut.sealed) cut.sealed[field] = bytes.slice(0, index);
        expect(() => secrets.open(changed)).toThrow(SecretError);
        expect(() => secrets.open(cut)).toThrow(SecretError);
      }
    }
  });

  test('say which key they need, and which ones are here', () => {
    const other = createSecrets([keyOf(8), keyOf(9)], random);
    const record = recordOf(1n, 'a');
    expect(() => other.open(record)).toThrow(secretsKeyId(keyOf(7)));
    for (const id of other.keyIds) expect(() => other.open(record)).toThrow(id);
  });

  test('secrets that were sealed before there were data keys open too', () => {
    expect(secrets.open(directRecord(keyOf(7), 'calvin')).password).toBe('calvin');
    expect(() => secrets.open(directRecord(keyOf(8), 'calvin'))).toThrow(SecretError);
  });

  test('come under another key without being opened, and leave the first', () => {
    const record = recordOf(1n, 'calvin');
    const both = createSecrets([keyOf(8), keyOf(7)], random);
    expect(both.keyId).toBe(secretsKeyId(keyOf(8)));
    const sealed = record.sealed && both.reseal(record.sealed);
    expect(sealed?.ciphertext).toEqual(record.sealed?.ciphertext);
    if (sealed) record.sealed = sealed;
    expect(createSecrets([keyOf(8)], random).open(record).password).toBe('calvin');
    expect(() => secrets.open(record)).toThrow(SecretError);
    expect(sealed && both.reseal(sealed)).toBeUndefined();
  });

  test('go on under the key that seals when the keys are read again', () => {
    const ring = createSecrets([keyOf(1)], random);
    ring.useKeys([keyOf(2), keyOf(1)]);
    expect(ring.keyId).toBe(secretsKeyId(keyOf(1)));
    ring.sealWith(secretsKeyId(keyOf(2)));
    ring.useKeys([keyOf(2)]);
    expect(ring.keyIds).toEqual([secretsKeyId(keyOf(2))]);
    ring.sealWith(secretsKeyId(keyOf(1)));
    expect(ring.canSeal).toBe(false);
    ring.useKeys([keyOf(3), keyOf(2)]);
    expect(() => ring.seal('credentials/c1', 1n, 'a')).toThrow('keeps no secret until');
    expect(() => ring.useKeys([])).toThrow('no secrets key');
    expect(() => ring.useKeys([new Uint8Array(31)])).toThrow('31 bytes');
  });

  test('are bytes as well, each for its own purpose', () => {
    const sealed = secrets.sealBytes('trust/ca', Uint8Array.of(1, 2, 3));
    expect([...secrets.openBytes('trust/ca', sealed)]).toEqual([1, 2, 3]);
    expect(() => secrets.openBytes('trust/next', sealed)).toThrow('trust/next does not open');
    expect(() => secrets.openBytes('trust/ca', undefined)).toThrow('has no sealed value');
  });
});
