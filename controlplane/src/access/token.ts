/**
 * The text of an operator's token: "rwo1.TOKEN.SECRET".
 *
 * Invariants:
 * 1. The secret has 256 random bits, so that its SHA-256 needs no salt and no stretching.
 * 2. Two secrets are compared by their hashes, in constant time.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { asTokenId, type TokenId } from '@rackwright/messages';
import type { Random } from '@rackwright/platform';

const prefix = 'rwo1';
const secretBytes = 32;
const shape = /^rwo1\.([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([A-Za-z0-9_-]{43})$/;

/** The text of a new token, and the part of it that is stored. */
export function makeToken(
  tokenId: TokenId,
  random: Random,
): { readonly text: string; readonly secretSha256: Uint8Array } {
  const secret = Buffer.from(random.bytes(secretBytes)).toString('base64url');
  return { text: `${prefix}.${tokenId}.${secret}`, secretSha256: hashSecret(secret) };
}

/** The token's id and the hash of its secret; undefined when the text is not a token of ours. */
export function parseToken(
  text: string,
): { readonly tokenId: TokenId; readonly secretSha256: Uint8Array } | undefined {
  const [, tokenId, secret] = shape.exec(text) ?? [];
  if (tokenId === undefined || secret === undefined) return undefined;
  return { tokenId: asTokenId(tokenId), secretSha256: hashSecret(secret) };
}

/** Invariant 2. */
export function isSameHash(shown: Uint8Array, kept: Uint8Array): boolean {
  return shown.byteLength === kept.byteLength && timingSafeEqual(shown, kept);
}

function hashSecret(secret: string): Uint8Array {
  return createHash('sha256').update(secret).digest();
}
