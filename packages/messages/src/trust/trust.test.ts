import { generateKeyPairSync, randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  checkCertificateProof,
  readP256PublicKey,
  signCertificateProof,
} from './certificate-proof.ts';
import { formatJoinToken, joinSecretBytes, parseJoinSecret, parseJoinToken } from './join-token.ts';

const rackId = fc.stringMatching(/^[a-z]([a-z0-9-]{0,61}[a-z0-9])?$/);
const secret = fc.uint8Array({ minLength: joinSecretBytes, maxLength: joinSecretBytes });
const fingerprint = fc.stringMatching(/^[0-9a-f]{64}$/);

describe('a join token', () => {
  test('is read back from its text unchanged', () => {
    fc.assert(
      fc.property(fingerprint, rackId, secret, (caSha256, rack, bytes) => {
        const parts = parseJoinToken(` ${formatJoinToken(caSha256, rack, bytes)}\n`);
        expect(parts?.caSha256).toBe(caSha256);
        expect(parseJoinSecret(parts?.secretPart ?? '')).toEqual({
          rackId: rack,
          secret: Buffer.from(bytes).toString('base64url'),
        });
      }),
    );
  });

  test('is not recognized when a character is missing or added', () => {
    const text = formatJoinToken('ab'.repeat(32), 'r1', new Uint8Array(joinSecretBytes));
    expect(parseJoinToken(text.slice(0, -1))).toBeUndefined();
    expect(parseJoinToken(`${text}A`)).toBeUndefined();
    expect(parseJoinToken(text.slice(1))).toBeUndefined();
    expect(parseJoinSecret('r1')).toBeUndefined();
  });
});

describe('the proof for a certificate', () => {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const der = publicKey.export({ type: 'spki', format: 'der' });
  const nonce = randomBytes(16);

  test('holds for its key and nonce and for no other', () => {
    const signature = signCertificateProof(privateKey, der, nonce);
    expect(checkCertificateProof(publicKey, der, nonce, signature)).toBe(true);
    expect(checkCertificateProof(publicKey, der, randomBytes(16), signature)).toBe(false);
    expect(checkCertificateProof(publicKey, der, nonce, signature.slice(1))).toBe(false);
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    expect(checkCertificateProof(other.publicKey, der, nonce, signature)).toBe(false);
  });

  test('is wanted of P-256 keys only', () => {
    expect(readP256PublicKey(der)?.equals(publicKey)).toBe(true);
    const others = [
      generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey,
      generateKeyPairSync('ed25519').publicKey,
      generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey,
    ];
    for (const key of others) {
      expect(readP256PublicKey(key.export({ type: 'spki', format: 'der' }))).toBeUndefined();
    }
    expect(readP256PublicKey(new Uint8Array(0))).toBeUndefined();
    expect(readP256PublicKey(Buffer.concat([der, Buffer.from([0])]))).toBeUndefined();
    expect(readP256PublicKey(privateKey.export({ type: 'pkcs8', format: 'der' }))).toBeUndefined();
  });
});
