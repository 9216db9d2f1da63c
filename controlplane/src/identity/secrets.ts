/**
 * Secrets at rest: AES-256-GCM under one key in a file of its own.
 *
 * Invariants:
 * 1. Name and version of the credential are authenticated: a sealed value put under another name,
 *    or an old one put back under a newer version, does not open.
 * 2. Each sealing has a nonce of its own (96 random bits).
 * 3. What opens names the key that it needs; a wrong key is said, never guessed.
 */
import { createCipheriv, createDecipheriv, createHash } from 'node:crypto';
import type { store } from '@rackwright/api';
import type { Random } from '@rackwright/platform';

const cipherName = 'aes-256-gcm';
/** Length of the key. */
export const secretsKeyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;
const keyIdCharacters = 16;

/** A sealed value and the key that opens it. */
export interface Sealed {
  /** Nonce, ciphertext, tag. */
  readonly sealedPassword: Uint8Array;
  readonly keyId: string;
}

/** Seals and opens credentials. */
export interface Secrets {
  readonly keyId: string;
  /** Seals the password of version `version` of credential `name` ("credentials/c1"). */
  seal(name: string, version: bigint, password: string): Sealed;
  /** Throws `SecretError` when the record was sealed by another key or was changed. */
  open(record: store.CredentialRecord): { readonly username: string; readonly password: string };
}

/** Why a sealed value does not open. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
}

/** Secrets under `key`, `secretsKeyBytes` bytes. */
export function createSecrets(key: Uint8Array, random: Random): Secrets {
  if (key.length !== secretsKeyBytes) {
    throw new SecretError(`the secrets key has ${key.length} bytes; it must have 32`);
  }
  const keyId = createHash('sha256')
    .update('rackwright secrets key\0')
    .update(key)
    .digest('hex')
    .slice(0, keyIdCharacters);
  return {
    keyId,
    seal: (name, version, password) => {
      const nonce = random.bytes(nonceBytes);
      const cipher = createCipheriv(cipherName, key, nonce);
      cipher.setAAD(associated(name, version));
      const text = Buffer.concat([cipher.update(password, 'utf8'), cipher.final()]);
      const sealedPassword = new Uint8Array(Buffer.concat([nonce, text, cipher.getAuthTag()]));
      return { sealedPassword, keyId };
    },
    open: ({ credential, sealedPassword, keyId: neededKeyId }) => {
      const name = credential?.name ?? '';
      if (neededKeyId !== keyId) {
        throw new SecretError(
          `${name} was sealed with secrets key ${neededKeyId || '(none)'}, but this control ` +
            `plane has ${keyId}. Restore the secrets key from its backup, or set a new password.`,
        );
      }
      const aad = associated(name, credential?.version ?? 0n);
      const password = decrypt(key, sealedPassword, aad);
      if (password === undefined) {
        throw new SecretError(
          `${name} does not open: its record was changed or moved. Set the password again.`,
        );
      }
      return { username: credential?.username ?? '', password };
    },
  };
}

function decrypt(key: Uint8Array, sealed: Uint8Array, aad: Buffer): string | undefined {
  if (sealed.length < nonceBytes + tagBytes) return undefined;
  const nonce = sealed.subarray(0, nonceBytes);
  const text = sealed.subarray(nonceBytes, sealed.length - tagBytes);
  const decipher = createDecipheriv(cipherName, key, nonce, { authTagLength: tagBytes });
  decipher.setAAD(aad);
  decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes));
  try {
    return Buffer.concat([decipher.update(text), decipher.final()]).toString('utf8');
  } catch {
    return undefined;
  }
}

function associated(name: string, version: bigint): Buffer {
  return Buffer.from(`${name}\0${version}`);
}
