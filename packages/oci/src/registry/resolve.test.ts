import type { WebRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { type Page, pagesWeb } from '../testing/web.ts';
import { RegistryClient } from './client.ts';

const bytes = Buffer.from('{"schemaVersion":2,"layers":[]}');
const digest = digestOf(bytes);
const old = digestOf(Buffer.from('old'));
const told = { 'docker-content-digest': digest };
const registry = 'registry.example.org';

function clientOf(answer: (request: WebRequest) => Page) {
  const { web, requests } = pagesWeb(answer);
  const client = new RegistryClient(web, { registry, plainHttp: false, credential: undefined });
  return { requests, resolve: (known?: typeof digest) => client.resolve('os/debian', '12', known) };
}

const asked = (requests: readonly WebRequest[]): string[] =>
  requests.map(({ method, url }) => `${method} ${url.replace(`https://${registry}/v2/`, '')}`);

test('a tag is looked up by its head, and read by its digest', async () => {
  const { resolve, requests } = clientOf(({ method }) =>
    method === 'HEAD' ? { headers: told } : { body: bytes },
  );
  expect(await resolve(old)).toEqual({ kind: 'found', digest, bytes: new Uint8Array(bytes) });
  expect(asked(requests)).toEqual([
    'HEAD os/debian/manifests/12',
    `GET os/debian/manifests/${digest}`,
  ]);
  const { accept } = requests[0]?.headers ?? {};
  for (const type of ['manifest.v1', 'index.v1', 'manifest.v2', 'manifest.list.v2']) {
    expect(accept).toContain(`${type}+json`);
  }
  expect(requests[0]?.headers['if-none-match']).toBe(`"${old}"`);
});

describe('a tag that still names what it named', () => {
  test.each([
    ['304', { status: 304 }],
    ['its digest again', { headers: told }],
  ])('costs one request: %s', async (_, page) => {
    const { resolve, requests } = clientOf(() => page);
    expect(await resolve(digest)).toEqual({ kind: 'unchanged' });
    expect(requests).toHaveLength(1);
  });

  test('is hashed where no digest is told', async () => {
    const { resolve, requests } = clientOf(() => ({ body: bytes }));
    expect(await resolve(digest)).toEqual({ kind: 'unchanged' });
    expect(asked(requests)).toEqual(['HEAD os/debian/manifests/12', 'GET os/debian/manifests/12']);
  });
});

test.each([
  ['tells no digest', {}],
  ['tells one that is no SHA-256', { headers: { 'docker-content-digest': 'sha512:00' } }],
  ['knows no HEAD', { status: 405 }],
])('a registry that %s is asked for the whole', async (_, head) => {
  const { resolve } = clientOf(({ method }) => (method === 'HEAD' ? head : { body: bytes }));
  expect(await resolve()).toMatchObject({ kind: 'found', digest });
});

test.each([
  [
    'sends another one than it tells',
    ({ method }: WebRequest) => (method === 'HEAD' ? { headers: told } : { body: 'other' }),
  ],
  [
    'calls what it sends another',
    ({ method }: WebRequest) =>
      method === 'HEAD' ? { status: 405 } : { body: 'other', headers: told },
  ],
])('a registry that %s is refused', async (_, answer) => {
  await expect(clientOf(answer).resolve()).rejects.toMatchObject({ kind: 'digestMismatch' });
});

test.each([
  [404, {}, 'notFound', undefined],
  [401, {}, 'unauthorized', undefined],
  [429, { 'retry-after': '7' }, 'tooMany', 7_000],
  [503, { 'retry-after': '3' }, 'unreachable', 3_000],
  [304, {}, 'refused', undefined],
])('%i %j is %s', async (status, headers, kind, retryAfterMs) => {
  const { resolve } = clientOf(() => ({ status, headers }));
  await expect(resolve()).rejects.toMatchObject({ kind, retryAfterMs });
});
