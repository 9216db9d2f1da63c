/**
 * Keys: a resource name with "/" written as ".", in the alphabet that every driver can hold (SQLite
 * text, NATS subjects). Order is by code unit, "." before any letter or digit.
 *
 * Must not: repair a key. An invalid key is refused, or escaped by the caller's own choice.
 */
import { StoreError } from './errors.ts';

/** Longest key, in characters (all of one byte). */
export const KEY_LENGTH_MAX = 512;

const SEGMENT = /^[A-Za-z0-9_=-]+$/;
const PLAIN = /^[A-Za-z0-9_-]$/;
const PLAIN_TEXT = /^[A-Za-z0-9_-]+$/;
const KEY = /^[A-Za-z0-9_=-]+(?:\.[A-Za-z0-9_=-]+)*$/;

/**
 * Segments beginning like this as the first of a key belong to drivers: refused in `storeKey`,
 * never listed.
 */
export const RESERVED_FIRST_SEGMENT = '_store';

/** The key of the resource name `segments.join('/')`. Throws `invalidKey`. */
export function storeKey(...segments: readonly string[]): string {
  for (const segment of segments) {
    if (segment.includes('.')) {
      throw new StoreError(
        'invalidKey',
        `segment ${JSON.stringify(segment)} contains "."; escape it with keySegment()`,
      );
    }
  }
  const key = segments.join('.');
  checkKey(key);
  return key;
}

/**
 * Any text as one segment, one to one: letters, digits, "_" and "-" stay, every other UTF-8 byte
 * becomes "=" and two hex digits. For values that are not resource ids: MAC and IP addresses,
 * serial numbers. Throws `invalidKey` for an empty text.
 */
export function keySegment(text: string): string {
  if (text === '') throw new StoreError('invalidKey', 'an empty text cannot be a key segment');
  if (PLAIN_TEXT.test(text)) return text;
  let segment = '';
  for (const byte of new TextEncoder().encode(text)) {
    const letter = String.fromCharCode(byte);
    segment += PLAIN.test(letter) ? letter : `=${byte.toString(16).padStart(2, '0').toUpperCase()}`;
  }
  return segment;
}

/** Throws `invalidKey` with the problem. */
export function checkKey(key: string): void {
  const wrong = wrongInKey(key);
  if (wrong !== undefined) {
    throw new StoreError('invalidKey', `key ${JSON.stringify(key.slice(0, 80))} ${wrong}`);
  }
}

/** A prefix is a key or the empty string, which means all keys. Throws `invalidPrefix`. */
export function checkPrefix(prefix: string): void {
  if (prefix === '') return;
  const wrong = wrongInKey(prefix);
  if (wrong === undefined) return;
  const hint = prefix.endsWith('.') ? '; give the prefix without the trailing "."' : '';
  throw new StoreError(
    'invalidPrefix',
    `prefix ${JSON.stringify(prefix.slice(0, 80))} ${wrong}${hint}`,
  );
}

/** Whether `key` is `prefix` or lies below it by whole segments. */
export function isUnder(prefix: string, key: string): boolean {
  return prefix === '' || key === prefix || key.startsWith(`${prefix}.`);
}

function wrongInKey(key: string): string | undefined {
  if (key === '') return 'is empty; at least one segment is needed';
  if (key.length > KEY_LENGTH_MAX) {
    return `has ${key.length} characters; at most ${KEY_LENGTH_MAX} are stored`;
  }
  if (KEY.test(key) && !key.startsWith(RESERVED_FIRST_SEGMENT)) return undefined;
  const segments = key.split('.');
  if (segments[0] === RESERVED_FIRST_SEGMENT) return 'begins with a segment that drivers reserve';
  for (const segment of segments) {
    if (segment === '') return 'has an empty segment; segments are joined by single dots';
    if (!SEGMENT.test(segment)) {
      return `has the segment ${JSON.stringify(segment)}; allowed are A-Z a-z 0-9 _ - =`;
    }
  }
  return undefined;
}
