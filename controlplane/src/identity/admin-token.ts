/**
 * The first token, an administrator's: written to a file once, stored as a hash.
 *
 * Must not: log the token or keep its text in memory after the first start has written its file.
 */
import { createHash } from 'node:crypto';
import type { Random } from '@rackwright/platform';

const prefix = 'rwa1.';
/** Random bytes in a token. */
const tokenBytes = 32;

/** A new token's text. */
export function makeAdminToken(random: Random): string {
  return prefix + Buffer.from(random.bytes(tokenBytes)).toString('base64url');
}

/** What is stored of a token: SHA-256, lower-case hex. It has 256 random bits, so no salt. */
export function hashAdminToken(token: string): string {
  return createHash('sha256').update(token).digest('hex');
}
