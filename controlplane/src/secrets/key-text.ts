/**
 * The text form of secrets keys: one key a line, 32 bytes in base64. The first one is to seal; the
 * others open older data. Empty lines and those that begin with # are ignored.
 *
 * Must not: repeat anything of the text in an error.
 */
import { keyBytes } from './seal.ts';
import { SecretError } from './secrets.ts';

/** The most keys of one source. */
export const keysMax = 8;
/** Longest text of keys, bytes; comments included. */
export const keyTextBytesMax = 16 * 1024;

const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/;

/**
 * The keys of a text. Throws `SecretError` with the number of the wrong line; `source` is its
 * source.
 */
export function parseKeys(text: string, source: string): readonly Uint8Array[] {
  if (Buffer.byteLength(text) > keyTextBytesMax) {
    throw new SecretError(`${source} has more than ${keyTextBytesMax} bytes; ${form}`);
  }
  const keys: Uint8Array[] = [];
  for (const [index, written] of text.split('\n').entries()) {
    const line = written.trim();
    if (line === '' || line.startsWith('#')) continue;
    if (!base64.test(line)) {
      throw new SecretError(`${source}: line ${index + 1} is not base64; ${form}`);
    }
    const key = Buffer.from(line, 'base64');
    if (key.length !== keyBytes) {
      throw new SecretError(
        `${source}: line ${index + 1} must hold ${keyBytes} bytes in base64, not ${key.length}`,
      );
    }
    keys.push(new Uint8Array(key));
  }
  if (keys.length === 0) throw new SecretError(`${source} holds no key; ${form}`);
  if (keys.length > keysMax) {
    throw new SecretError(`${source} holds ${keys.length} keys; at most ${keysMax} are read`);
  }
  return keys;
}

const form =
  'write one key a line, 32 bytes in base64, the one that shall seal first; ' +
  '`openssl rand -base64 32` makes one';

/** A key as a line of such a text. */
export function formatKey(key: Uint8Array): string {
  return `${Buffer.from(key).toString('base64')}\n`;
}
