import type { WebRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { type Page, pagesWeb, rangePage } from '../testing/web.ts';
import { verifiedBlob } from './source.ts';
import { basic } from './token.ts';
import { WebFile } from './web-blobs.ts';

const bytes = Buffer.alloc(3_000, 'disk');
const digest = digestOf(bytes);
const url = 'https://images.example.org/debian.raw.zst';
const credential = { username: 'robot', password: 'sesame' };

function fileOf(answer: (request: WebRequest) => Page, access = {}) {
  const { web, requests } = pagesWeb(answer);
  return { file: new WebFile(web, { url, credential: undefined, ...access }), requests };
}

async function read(file: WebFile): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  const wanted = { digest, sizeBytes: bytes.length };
  for await (const part of verifiedBlob(file, wanted)) parts.push(part);
  return Buffer.concat(parts);
}

test('the size is known also if HEAD is unknown or was not signed', async () => {
  const headers = { 'content-length': '3000' };
  expect(await fileOf(() => ({ headers })).file.sizeBytes()).toBe(3_000);
  for (const status of [403, 405, 501]) {
    const old = fileOf(({ method }) => (method === 'HEAD' ? { status } : { headers }));
    expect(await old.file.sizeBytes()).toBe(3_000);
  }
  await expect(fileOf(() => ({})).file.sizeBytes()).rejects.toThrow('does not say how long');
});

describe('a file whose connection breaks', () => {
  test.each([
    ['strong', '"v1"', '"v1"'],
    ['weak', 'W/"v1"', undefined],
    ['missing', undefined, undefined],
  ])('is gone on with while it is the same: its name is %s', async (_, etag, condition) => {
    let connections = 0;
    const { file, requests } = fileOf(({ headers }) => {
      connections += 1;
      const page = rangePage(bytes, headers['range']);
      const named = { ...page.headers, ...(etag === undefined ? {} : { etag }) };
      return { ...page, headers: named, ...(connections === 1 ? { breaksAfter: 1_000 } : {}) };
    });
    expect((await read(file)).equals(bytes)).toBe(true);
    expect(requests[1]?.headers).toMatchObject({ range: 'bytes=1000-' });
    expect(requests[1]?.headers['if-range']).toBe(condition);
  });

  test('a file that has changed since is refused by its digest', async () => {
    let connections = 0;
    const { file } = fileOf(() => {
      connections += 1;
      if (connections === 1) return { body: bytes, headers: { etag: '"v1"' }, breaksAfter: 1_000 };
      return { body: Buffer.alloc(3_000, 'other'), headers: { etag: '"v2"' } };
    });
    await expect(read(file)).rejects.toMatchObject({ kind: 'digestMismatch' });
  });

  test('is begun again where the server finds the range too far', async () => {
    let connections = 0;
    const { file } = fileOf(({ headers }) => {
      connections += 1;
      if (connections === 1) return { body: bytes, breaksAfter: 1_000 };
      return headers['range'] === undefined ? { body: bytes } : { status: 416 };
    });
    expect((await read(file)).equals(bytes)).toBe(true);
  });
});

test('the credential goes to the blob’s own server, and to no redirect target', async () => {
  const { file, requests } = fileOf(
    (request) =>
      request.url === url
        ? { status: 302, headers: { location: 'https://cdn.example.org/x' } }
        : { body: bytes },
    { credential },
  );
  expect((await read(file)).equals(bytes)).toBe(true);
  expect(requests.map(({ headers }) => headers['authorization'])).toEqual([
    basic(credential),
    undefined,
  ]);
});

test.each([
  [401, 'unauthorized'],
  [404, 'notFound'],
  [410, 'notFound'],
  [429, 'tooMany'],
  [502, 'unreachable'],
  [418, 'refused'],
])('%i is %s', async (status, kind) => {
  const { file } = fileOf(() => ({ status }));
  await expect(file.sizeBytes()).rejects.toMatchObject({ kind });
  await expect(read(file)).rejects.toMatchObject({ kind });
});

test.each([
  ['http://user:word@images.example.org/', 'holds a user'],
  ['ftp://images.example.org/', 'http: or https:'],
  ['nonsense', 'http: or https:'],
])('%s is no place to ask', (place, text) => {
  const { web } = pagesWeb(() => ({}));
  expect(() => new WebFile(web, { url: place, credential: undefined })).toThrow(text);
});
