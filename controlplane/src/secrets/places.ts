/**
 * Which records hold sealed values, for counting them by key and for giving them another one. A
 * kind of record that is not named here keeps its old key for ever.
 */
import { clone, fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { Secrets } from './secrets.ts';

/** Records under one prefix of the store. */
export interface SealedPlace {
  readonly prefix: string;
  /** Ids of the keys that the record needs; empty when it holds nothing sealed. */
  keyIdsOf(value: Uint8Array): readonly string[];
  /**
   * The record under the key that seals; undefined: it is already. Throws `SecretError` when the
   * key that it needs is not here.
   */
  resealed(value: Uint8Array, secrets: Secrets): Uint8Array | undefined;
}

const credentials: SealedPlace = {
  prefix: 'credentials',
  keyIdsOf: (value) => {
    const record = fromBinary(wire.CredentialRecordSchema, value);
    const keyId = record.sealed?.keyId ?? record.keyId;
    return keyId === '' ? [] : [keyId];
  },
  resealed: (value, secrets) => {
    const record = fromBinary(wire.CredentialRecordSchema, value);
    const next = clone(wire.CredentialRecordSchema, record);
    if (record.sealed === undefined) {
      if (record.keyId === '') return undefined;
      // Sealed under the secrets key itself, as it was done once.
      const { name = '', version = 0n } = record.credential ?? {};
      Object.assign(next, secrets.seal(name, version, secrets.open(record).password));
    } else {
      const sealed = secrets.reseal(record.sealed);
      if (sealed === undefined) return undefined;
      next.sealed = sealed;
    }
    return toBinary(wire.CredentialRecordSchema, next);
  },
};

/** The keys of certificate authorities, all in one record. */
const authorities: SealedPlace = {
  prefix: 'trust.authorities',
  keyIdsOf: (value) => {
    const record = fromBinary(wire.TrustRecordSchema, value);
    return record.authorities.map(({ sealedKey }) => sealedKey?.keyId ?? '').filter(Boolean);
  },
  resealed: (value, secrets) => {
    const record = fromBinary(wire.TrustRecordSchema, value);
    let isChanged = false;
    for (const authority of record.authorities) {
      const sealed = authority.sealedKey && secrets.reseal(authority.sealedKey);
      if (sealed === undefined) continue;
      authority.sealedKey = sealed;
      isChanged = true;
    }
    return isChanged ? toBinary(wire.TrustRecordSchema, record) : undefined;
  },
};

/** All of them. */
export const sealedPlaces: readonly SealedPlace[] = [credentials, authorities];
