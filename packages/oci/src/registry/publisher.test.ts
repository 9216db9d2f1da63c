import type { WebRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { type Page, pagesWeb } from '../testing/web.ts';
import { RegistryPublisher } from './publisher.ts';

const bytes = Buffer.alloc(10_000_000, 'disk');
const digest = digestOf(bytes);
const registry = 'registry.example.org';
const tokens = 'https://auth.example.org/token';

/** A registry that accepts every upload, unless `page` answers instead. */
function publisherOf(page: (request: WebRequest) => Page | undefined = () => undefined) {
  const sent: Buffer[] = [];
  let uploads = 0;
  const { web, requests } = pagesWeb((request) => {
    const own = page(request);
    if (own !== undefined) return own;
    switch (request.method) {
      case 'HEAD':
        return { status: 404 };
      case 'PUT':
        return { status: 201 };
      default: {
        sent.push(Buffer.from(request.body ?? []));
        uploads += 1;
        return { status: 202, headers: { location: `/v2/os/x/uploads/${uploads}?state=1` } };
      }
    }
  });
  const credential = { username: 'robot', password: 'sesame' };
  const publisher = new RegistryPublisher(web, {
    ...{ registry, plainHttp: false, credential, tokenService: 'auth.example.org' },
  });
  const push = (sizeBytes = bytes.length) =>
    publisher.blob({ repository: 'os/x', digest, sizeBytes }, chunks());
  return { publisher, push, requests, sent };
}

async function* chunks() {
  for (let at = 0; at < bytes.length; at += 300_000) yield bytes.subarray(at, at + 300_000);
}

test('a blob is sent in pieces to where the registry points, and named at the end', async () => {
  const { push, requests, sent } = publisherOf();
  await push();
  expect(Buffer.concat(sent).equals(bytes)).toBe(true);
  expect(
    requests.map(({ method, url, headers }) => {
      return `${method} ${new URL(url).pathname} ${headers['content-range'] ?? ''}`.trim();
    }),
  ).toEqual([
    `HEAD /v2/os/x/blobs/${digest}`,
    'POST /v2/os/x/blobs/uploads/',
    'PATCH /v2/os/x/uploads/1 0-8388607',
    'PATCH /v2/os/x/uploads/2 8388608-9999999',
    'PUT /v2/os/x/uploads/3',
    `HEAD /v2/os/x/blobs/${digest}`,
  ]);
  const last = new URL(requests.at(-2)?.url ?? '');
  expect(last.searchParams.get('digest')).toBe(digest);
  expect(last.searchParams.get('state')).toBe('1');
});

test('the token for a push is asked of its token service, and shown to nobody else', async () => {
  const elsewhere = 'https://storage.example.org/upload';
  const { push, requests } = publisherOf(({ method, url, headers }) => {
    if (url.startsWith(tokens)) return { body: '{"token":"tok"}' };
    if (url.startsWith(elsewhere)) return undefined;
    if (headers['authorization'] !== 'Bearer tok') {
      return { status: 401, headers: { 'www-authenticate': `Bearer realm="${tokens}"` } };
    }
    return method === 'POST' ? { status: 202, headers: { location: elsewhere } } : undefined;
  });
  await push();
  const asked = requests.filter(({ url }) => url.startsWith(tokens));
  expect(asked.map(({ url }) => new URL(url).searchParams.get('scope'))).toEqual([
    'repository:os/x:pull,push',
  ]);
  const there = requests.filter(({ url }) => url.startsWith(elsewhere));
  expect(there.map(({ headers }) => headers['authorization'])).toEqual([undefined]);
});

describe('a blob is not pushed', () => {
  test('a blob is not pushed when it is there', async () => {
    const { push, requests } = publisherOf(({ method }) =>
      method === 'HEAD' ? { headers: { 'content-length': String(bytes.length) } } : undefined,
    );
    await push();
    expect(requests).toHaveLength(1);
  });

  test('a push succeeds only where the registry then has the whole blob', async () => {
    for (const isMended of [true, false]) {
      let heads = 0;
      const { push, sent } = publisherOf(({ method }) => {
        if (method !== 'HEAD') return undefined;
        const length = isMended && (heads += 1) > 1 ? bytes.length : 500_000;
        return { headers: { 'content-length': String(length) } };
      });
      const pushing = push();
      if (isMended) await pushing;
      else await expect(pushing).rejects.toThrow('with 500000 of its 10000000 bytes');
      expect(Buffer.concat(sent).equals(bytes)).toBe(true);
    }
  });

  test('a blob is not pushed when its file is shorter than was said', async () => {
    const { push, requests } = publisherOf();
    await expect(push(bytes.length + 1)).rejects.toMatchObject({ kind: 'truncated' });
    expect(requests.some(({ method }) => method === 'PUT')).toBe(false);
  });

  test.each([
    ['says nowhere to push to', { status: 202 }, 'refused'],
    ['points to what is not safe', { status: 202, headers: { location: 'http://x/' } }, 'refused'],
    ['refuses', { status: 403 }, 'unauthorized'],
    ['is full', { status: 507 }, 'unreachable'],
    ['is asked too often', { status: 429, headers: { 'retry-after': '2' } }, 'tooMany'],
  ])('a blob is not pushed to a registry that %s', async (_, page, kind) => {
    const { push } = publisherOf(({ method }) => (method === 'POST' ? page : undefined));
    await expect(push()).rejects.toMatchObject({ kind });
  });
});

test('a manifest goes under its tag, or under its own digest', async () => {
  const { publisher, requests } = publisherOf();
  const manifest = Buffer.from('{}');
  await publisher.manifest('os/x', manifest, 'application/x', 'stable');
  expect(await publisher.manifest('os/x', manifest, 'application/x')).toBe(digestOf(manifest));
  expect(requests.map(({ url }) => url.split('/').at(-1))).toEqual(['stable', digestOf(manifest)]);
  expect(requests[0]?.headers['content-type']).toBe('application/x');
});
