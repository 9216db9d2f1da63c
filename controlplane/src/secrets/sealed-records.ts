/**
 * The records with sealed values, to count them by key and to seal them again. A kind of record
 * that is missing here keeps its old key forever.
 */
import { clone, fromBinary, toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { Secrets } from './secrets.ts';

/** Records under one prefix of the store. */
export interface SealedRecords {
  readonly prefix: string;
  /** Ids of the keys that the record needs; empty when nothing in it is sealed. */
  keyIdsOf(value: Uint8Array): readonly string[];
  /**
   * The record sealed with the present key; undefined: it already is. Throws `SecretError` when the
   * needed key is missing.
   */
  resealed(value: Uint8Array, secrets: Secrets): Uint8Array | undefined;
}

const credentials: SealedRecords = {
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
      // Sealed directly with the secrets key, as in earlier versions.
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
const authorities: SealedRecords = {
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
export const sealedRecords: readonly SealedRecords[] = [credentials, authorities];
