/**
 * Secrets at rest: each under a data key of its own, which is sealed by the secrets key.
 *
 * Invariants:
 * 1. The purpose of a value (such as name and version of a credential) is authenticated: a value
 *    under another name, or an old value under a newer version, does not open.
 * 2. Each sealing has a data key and nonces of its own.
 * 3. A sealed value names the key that it needs; a wrong key is reported, never guessed.
 * 4. Another secrets key changes only the sealed data key: the value itself stays as it was.
 * 5. Bytes of keys that are no longer needed are overwritten. Texts of passwords cannot be: the
 *    runtime keeps them until garbage collection.
 */
import { createHash } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { store } from '@rackwright/messages';
import type { Random } from '@rackwright/platform';
import { keyBytes, nonceBytes, openUnder, sealUnder } from './seal.ts';

const keyIdCharacters = 16;
const valueKeyPurpose = 'key of a sealed value';

/** Why a sealed value does not open, or a key cannot be read. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

/** The fields of a credential's record that hold its password. */
export type SealedPassword = Pick<store.CredentialRecord, 'sealed' | 'sealedPassword' | 'keyId'>;

/** Seals and opens. */
export interface Secrets {
  /** The id of the sealing key. */
  readonly keyId: string;
  /** The ids of all present keys, in the order of their source. */
  readonly keyIds: readonly string[];
  /** Whether the sealing key is present; otherwise nothing is sealed. */
  readonly canSeal: boolean;
  /** Replaces the keys; the sealing key's id stays. */
  useKeys(keys: readonly Uint8Array[]): void;
  /** From now on the key of this id seals; nothing is sealed while it is missing. */
  sealWith(keyId: string): void;
  /** Seals bytes for `context`, a unique name of the value. */
  sealBytes(context: string, plain: Uint8Array): store.SealedValue;
  /** Throws `SecretError`. */
  openBytes(context: string, sealed: store.SealedValue | undefined): Uint8Array;
  /** The same secret under the sealing key; undefined: it already is. Throws `SecretError`. */
  reseal(sealed: store.SealedValue): store.SealedValue | undefined;
  /** Seals the password of version `version` of credential `name` ("credentials/c1"). */
  seal(name: string, version: bigint, password: string): SealedPassword;
  /** Throws `SecretError` when no key of ours sealed the record, or when it was changed. */
  open(record: store.CredentialRecord): { readonly username: string; readonly password: string };
}

/** Id of a secrets key: distinguishes keys, and reveals nothing about them. */
export function secretsKeyId(key: Uint8Array): string {
  const hash = createHash('sha256').update('rackwright secrets key\0').update(key);
  return hash.digest('hex').slice(0, keyIdCharacters);
}

/** The same value, its key sealed by the active key of the ring. */
function resealed(ring: Ring, sealed: store.SealedValue, nonce: Uint8Array): store.SealedValue {
  const valueKey = openValueKey(ring, 'a sealed value', sealed);
  const keyId = ring.active;
  const keySealed = sealUnder(ring.sealing(), nonce, valueKeyPurpose, valueKey);
  valueKey.fill(0);
  return { ...sealed, sealedDataKey: keySealed, keyId };
}

/** Secrets under these keys; the first one seals. Throws `SecretError`. */
export function createSecrets(keys: readonly Uint8Array[], random: Random): Secrets {
  const ring = new Ring(keys);
  const sealBytes: Secrets['sealBytes'] = (context, plain) => {
    const chance = random.bytes(keyBytes + 2 * nonceBytes);
    const valueKey = chance.subarray(0, keyBytes);
    const nonce = chance.subarray(keyBytes, keyBytes + nonceBytes);
    const keyNonce = chance.subarray(keyBytes + nonceBytes);
    const sealed = create(store.SealedValueSchema, {
      ciphertext: sealUnder(valueKey, nonce, context, plain),
      sealedDataKey: sealUnder(ring.sealing(), keyNonce, valueKeyPurpose, valueKey),
      keyId: ring.active,
    });
    valueKey.fill(0);
    return sealed;
  };
  const openBytes: Secrets['openBytes'] = (context, sealed) => {
    if (sealed === undefined) throw new SecretError(`${nameOf(context)} has no sealed value`);
    const valueKey = openValueKey(ring, context, sealed);
    const plain = openUnder(valueKey, context, sealed.ciphertext);
    valueKey.fill(0);
    if (plain === undefined) throw changed(context);
    return plain;
  };
  return {
    get keyId() {
      return ring.active;
    },
    get keyIds() {
      return ring.ids();
    },
    get canSeal() {
      return ring.ids().includes(ring.active);
    },
    useKeys: (next) => ring.replace(next),
    sealWith: (keyId) => ring.activate(keyId),
    sealBytes,
    openBytes,
    reseal: (sealed) =>
      sealed.keyId === ring.active ? undefined : resealed(ring, sealed, random.bytes(nonceBytes)),
    seal: (name, version, password) => {
      const plain = Buffer.from(password);
      const sealed = sealBytes(contextOf(name, version), plain);
      plain.fill(0);
      return { sealed, sealedPassword: new Uint8Array(), keyId: '' };
    },
    open: (record) => {
      const { name = '', version = 0n, username = '' } = record.credential ?? {};
      const context = contextOf(name, version);
      const plain =
        record.sealed === undefined
          ? openDirect(ring, context, record)
          : openBytes(context, record.sealed);
      const password = Buffer.from(plain).toString('utf8');
      plain.fill(0);
      return { username, password };
    },
  };
}

function contextOf(name: string, version: bigint): string {
  return `${name}\0${version}`;
}

function nameOf(context: string): string {
  return context.split('\0')[0] || 'a secret';
}

function changed(context: string): SecretError {
  return new SecretError(
    `${nameOf(context)} does not open: its record was changed or moved. Set the password again.`,
  );
}

function openValueKey(ring: Ring, context: string, sealed: store.SealedValue): Uint8Array {
  const key = ring.needed(sealed.keyId, nameOf(context));
  const valueKey = openUnder(key, valueKeyPurpose, sealed.sealedDataKey);
  if (valueKey === undefined || valueKey.length !== keyBytes) throw changed(context);
  return valueKey;
}

/** As records were sealed before data keys existed: with the secrets key itself. */
function openDirect(ring: Ring, context: string, record: store.CredentialRecord): Uint8Array {
  const key = ring.needed(record.keyId, nameOf(context));
  const plain = openUnder(key, context, record.sealedPassword);
  if (plain === undefined) throw changed(context);
  return plain;
}

class Ring {
  readonly #keys = new Map<string, Uint8Array>();
  #active = '';

  constructor(keys: readonly Uint8Array[]) {
    this.replace(keys);
  }

  get active(): string {
    return this.#active;
  }

  ids(): readonly string[] {
    return [...this.#keys.keys()];
  }

  replace(keys: readonly Uint8Array[]): void {
    const next = new Map<string, Uint8Array>();
    for (const key of keys) {
      if (key.length !== keyBytes) {
        throw new SecretError(`a secrets key has ${key.length} bytes; it must have ${keyBytes}`);
      }
      next.set(secretsKeyId(key), Uint8Array.from(key));
    }
    const [first] = next.keys();
    if (first === undefined) throw new SecretError('there is no secrets key');
    for (const old of this.#keys.values()) old.fill(0);
    this.#keys.clear();
    for (const [id, key] of next) this.#keys.set(id, key);
    // Another replica may have dropped the first key by now: only the store says which key seals.
    if (this.#active === '') this.#active = first;
  }

  activate(keyId: string): void {
    this.#active = keyId;
  }

  sealing(): Uint8Array {
    const key = this.#keys.get(this.#active);
    if (key !== undefined) return key;
    throw new SecretError(
      `secrets key ${this.#active} seals, but this control plane has ${this.ids().join(', ')}: ` +
        'it keeps no secret until its source holds that key.',
    );
  }

  needed(keyId: string, whose: string): Uint8Array {
    const key = this.#keys.get(keyId);
    if (key !== undefined) return key;
    throw new SecretError(
      `${whose} was sealed with secrets key ${keyId || '(none)'}, but this control plane has ` +
        `${this.ids().join(', ')}. Restore the secrets key from its backup, or set a new password.`,
    );
  }
}
