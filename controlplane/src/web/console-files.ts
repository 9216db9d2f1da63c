/**
 * The files of the web console, served from memory as they were built.
 *
 * Invariants:
 * 1. Only files that were read at the start are served: a path is a key, and reaches no file
 *    system.
 * 2. A file with the hash of its content in its name never changes and may be cached forever; the
 *    others a browser validates each time, by the ETag (RFC 9110 §8.8.3).
 * 3. The pages may load from and connect to this origin alone, run no inline script, and cannot be
 *    framed (Content Security Policy Level 3).
 */
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { PageRequest, PageResponse } from '@rackwright/messages';
import { textPage, wrongMethod } from './answers.ts';

const contentSecurityPolicy = [
  "default-src 'none'",
  ...["script-src 'self'", "style-src 'self'", "font-src 'self'", "connect-src 'self'"],
  ...["img-src 'self' data:", "manifest-src 'self'", "worker-src 'self'"],
  ...["base-uri 'none'", "form-action 'self'", "frame-ancestors 'none'"],
].join('; ');

const pageHeaders = {
  'content-security-policy': contentSecurityPolicy,
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'x-frame-options': 'DENY',
} as const;

/** In the form of bundlers: "assets/index-B1x9_aQz.js". */
const hashedName = /[-.][A-Za-z0-9_-]{8,}\.[a-z0-9]+$/;
const forEver = 'public, max-age=31536000, immutable';

const types: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  json: 'application/json',
  map: 'application/json',
  webmanifest: 'application/manifest+json',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  txt: 'text/plain; charset=utf-8',
};
const packable: ReadonlySet<string> = new Set(['html', 'js', 'css', 'json', 'map', 'svg', 'txt']);
const packedBytesMin = 1_024;

type Coding = 'br' | 'gzip';

const pack: Readonly<Record<Coding, (bytes: Uint8Array) => Promise<Uint8Array>>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } }),
  gzip: (bytes) => promisify(gzip)(bytes, { level: 9 }),
};

interface ConsoleFile {
  readonly bytes: Uint8Array;
  readonly etag: string;
  readonly type: string;
  readonly isPackable: boolean;
  readonly isHashed: boolean;
  /** Each encoding is made once, at its first request. */
  readonly packed: Map<Coding, Promise<Uint8Array>>;
}

/** Serves every path that is no other page. */
export type ConsolePages = (request: PageRequest) => Promise<PageResponse>;

/** By their paths below the folder, such as "index.html"; empty: the console is not installed. */
export function consolePages(files: ReadonlyMap<string, Uint8Array>): ConsolePages {
  const kept = new Map([...files].map(([path, bytes]) => [`/${path}`, keep(path, bytes)]));
  return async (request) => {
    const { method, path } = request;
    const isRead = method === 'GET' || method === 'HEAD';
    const file = kept.get(path) ?? (isView(path) ? kept.get('/index.html') : undefined);
    if (file === undefined) return nothing(kept.size > 0, path);
    return isRead ? answer(request, file) : wrongMethod('GET');
  };
}

/** A view of the console has an address without a file extension: the page itself resolves it. */
function isView(path: string): boolean {
  return !(path.split('/').at(-1) ?? '').includes('.') && !path.startsWith('/auth/');
}

function nothing(isInstalled: boolean, path: string): PageResponse {
  if (isInstalled || path !== '/') return textPage(404, 'There is nothing here.');
  return textPage(
    404,
    'The web console is not installed. The API is here: POST ' +
      '/rackwright.v1.HostService/ListHosts with "authorization: Bearer TOKEN" and a body of {}.',
  );
}

function keep(path: string, bytes: Uint8Array): ConsoleFile {
  const ending = path.split('.').at(-1) ?? '';
  return {
    bytes,
    etag: createHash('sha256').update(bytes).digest('base64url').slice(0, 27),
    type: types[ending] ?? 'application/octet-stream',
    isPackable: packable.has(ending) && bytes.byteLength >= packedBytesMin,
    isHashed: hashedName.test(path),
    packed: new Map(),
  };
}

async function answer({ context }: PageRequest, file: ConsoleFile): Promise<PageResponse> {
  const { type, isHashed, isPackable } = file;
  const coding = isPackable ? codingOf(context.header('accept-encoding') ?? '') : undefined;
  const etag = `"${file.etag}${coding === undefined ? '' : `-${coding}`}"`;
  const headers = {
    ...pageHeaders,
    ...{ 'content-type': type, etag, vary: 'accept-encoding' },
    'cache-control': isHashed ? forEver : 'no-cache',
    ...(coding === undefined ? {} : { 'content-encoding': coding }),
  };
  if (matches(context.header('if-none-match') ?? '', etag)) return { status: 304, headers };
  const body = coding === undefined ? file.bytes : await packedAs(file, coding);
  return { status: 200, headers, body };
}

function packedAs({ bytes, packed }: ConsoleFile, coding: Coding): Promise<Uint8Array> {
  const made = packed.get(coding) ?? pack[coding](bytes);
  packed.set(coding, made);
  return made;
}

/** The best accepted encoding; one with "q=0" is not accepted (RFC 9110 §12.5.3). */
function codingOf(accepted: string): Coding | undefined {
  const given = accepted.split(',').map((each) => each.trim().toLowerCase());
  const takes = (coding: Coding): boolean =>
    given.some((each) => {
      const [name, ...parameters] = each.split(';').map((part) => part.trim());
      return name === coding && !parameters.some((part) => /^q=0(\.0*)?$/.test(part));
    });
  return (['br', 'gzip'] as const).find(takes);
}

function matches(condition: string, etag: string): boolean {
  return condition.split(',').some((each) => {
    const tag = each.trim().replace(/^W\//, '');
    return tag === '*' || tag === etag;
  });
}
