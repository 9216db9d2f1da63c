/**
 * The one admin token: shown once, kept as a hash.
 *
 * Must not: log the token or keep its text in memory after the first start has written its file.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import { type CallContext, unauthenticated } from '@rackwright/api';
import type { Random } from '@rackwright/platform';

const prefix = 'rwa1.';
/** Random bytes in a token. */
const tokenBytes = 32;
const scheme = /^bearer +/i;

/** A new token's text. */
export function makeAdminToken(random: Random): string {
  return prefix + Buffer.from(random.bytes(tokenBytes)).toString('base64url');
}

/** What is stored of a token: SHA-256, lower-case hex. It has 256 random bits, so no salt. */
export function hashAdminToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}

/** Lets a call through when its `authorization` header holds the token with this hash. */
export function createTokenGuard(tokenSha256: string): (context: CallContext) => void {
  const expected = Buffer.from(tokenSha256, 'hex');
  return (context) => {
    const header = context.header('authorization');
    if (header === undefined) {
      throw unauthenticated(
        'TOKEN_MISSING',
        'No token was sent. Send the admin token as "authorization: Bearer TOKEN".',
      );
    }
    const token = header.replace(scheme, '').trim();
    const presented = Buffer.from(hashAdminToken(token), 'hex');
    if (scheme.test(header) && timingSafeEqual(presented, expected)) return;
    throw unauthenticated(
      'TOKEN_WRONG',
      'The token is not this control plane’s admin token. ' +
        'It stands in the file admin.token of its data folder, unless that was moved away.',
    );
  };
}
