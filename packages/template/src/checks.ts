/** Whether the texts of steps meet the needs of their actions. */
import { durationProblem } from './duration.ts';
import {
  imageCharsMax,
  partitionMax,
  pathCharsMax,
  urlCharsMax,
  waitSecondsMax,
} from './limits.ts';
import { quoted } from './problems.ts';
import type { TextCheck } from './text.ts';

const domain = '[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?';
/** With a dot or a port, or this very machine: else it would be taken for a part of the name. */
const registry = `(?:${domain}:\\d{1,5}|(?=[^/:]*\\.)${domain}|localhost)`;
const repository = '(?:/[a-z0-9]+(?:(?:\\.|__?|-+)[a-z0-9]+)*)+';
const tag = '(?::[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?';
const pinned = new RegExp(`^${registry}${repository}${tag}@sha256:[0-9a-f]{64}$`);

export const imageProblem: TextCheck = (text) => {
  if (text.length <= imageCharsMax && pinned.test(text)) return undefined;
  const wanted = 'registry.example.org/tools/check@sha256: and 64 hex digits';
  if (text.includes('@')) return `is no image reference; it has the form ${wanted}`;
  return `must name the image by digest, for a tag can change: ${wanted}`;
};

const partBytesMax = 255;

export const pathProblem: TextCheck = (text) => {
  const parts = text.split('/');
  const isPlain = text.startsWith('/') && !text.endsWith('/') && text.length <= pathCharsMax;
  const isWrong = (part: string) =>
    part === '.' || part === '..' || new TextEncoder().encode(part).byteLength > partBytesMax;
  if (isPlain && !parts.some(isWrong) && !/[\r\n]/.test(text)) return undefined;
  return `must be the whole path of a file, without ".." and up to ${pathCharsMax} characters`;
};

export const directoryProblem: TextCheck = (text) =>
  text === '/' ? undefined : pathProblem(text)?.replace('a file', 'a folder');

export const modeProblem: TextCheck = (text) =>
  /^0[0-7]{3,4}$/.test(text) ? undefined : 'must be a mode in octal digits, as "0644"';

export const diskProblem: TextCheck = (text) =>
  /^[^\s/]{1,64}$/.test(text)
    ? undefined
    : 'must be the serial or WWN of a disk, 1 to 64 characters without blanks';

export const partitionProblem: TextCheck = (text) => {
  const number = /^\d{1,3}$/.test(text) ? Number(text) : 0;
  if (number >= 1 && number <= partitionMax) return undefined;
  return `must be the number of a partition, 1 to ${partitionMax}`;
};

export function oneOf(values: readonly string[]): TextCheck {
  return (text) =>
    values.includes(text) ? undefined : `must be one of ${values.join(', ')}, not ${quoted(text)}`;
}

/** The text must be base64, with its padding. */
export const base64Problem: TextCheck = (text) => {
  const packed = text.replaceAll(/\s/g, '');
  const fits = packed.length % 4 === 0 && /^[A-Za-z0-9+/]*={0,2}$/.test(packed);
  return fits ? undefined : 'must be base64, for encoding says so';
};

export const urlProblem: TextCheck = (text) => {
  const wanted = 'must be an address as https://hooks.example.org/done';
  if (text.length > urlCharsMax) return `has ${text.length} characters; ${urlCharsMax} are taken`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !/^https?:$/.test(url.protocol) || /\s/.test(text)) return wanted;
  if (url.username === '' && url.password === '') return undefined;
  return 'must hold no user name and no password, for everyone who reads templates sees them';
};

/** A header's value. */
export const headerProblem: TextCheck = (text) =>
  /^[\x20-\x7e]*$/.test(text) && text.length <= urlCharsMax
    ? undefined
    : `must be at most ${urlCharsMax} printable ASCII characters`;

export const waitProblem: TextCheck = (text) => durationProblem(text, waitSecondsMax);

/** The runner sets names that begin with RACKWRIGHT_. */
export const environmentName = /^(?!RACKWRIGHT_)[A-Za-z_][A-Za-z0-9_]{0,127}$/;
/** Headers of the call itself; the caller's program sets them. */
const ownHeaders =
  'host|content-length|transfer-encoding|connection|keep-alive|te|trailer|upgrade|expect|' +
  'idempotency-key|proxy-.*';
export const headerName = new RegExp(`^(?!(?:${ownHeaders})$)[a-z0-9!#$%&'*+.^_\`|~-]{1,64}$`, 'i');
export const argumentName = /^[a-z][A-Za-z0-9_]{0,62}$/;
