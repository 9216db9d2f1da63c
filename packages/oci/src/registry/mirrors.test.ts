import type { WebRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { type Page, pagesWeb } from '../testing/web.ts';
import { MirroredRegistry } from './mirrors.ts';
import { verifiedBlob } from './source.ts';

const bytes = Buffer.from('{"schemaVersion":2,"layers":[]}');
const digest = digestOf(bytes);
const credential = { username: 'robot', password: 'sesame' };
const access = { registry: 'origin.example.org', plainHttp: false, credential };
const mirrors = [
  { registry: 'one.example.org', plainHttp: false, credential: undefined, prefix: 'origin' },
  { registry: 'two.example.org', plainHttp: true, credential: undefined, prefix: '' },
];

/** Answers by the first label of the host's name. */
function registryOf(pages: Readonly<Record<string, Page | ((request: WebRequest) => Page)>>) {
  const { web, requests } = pagesWeb((request) => {
    const page = pages[new URL(request.url).host.split('.')[0] ?? ''] ?? { status: 503 };
    return typeof page === 'function' ? page(request) : page;
  });
  return { registry: new MirroredRegistry(web, access, mirrors), requests };
}

const hosts = (requests: readonly WebRequest[]): string[] =>
  requests.map(({ url }) => new URL(url).host);

async function read(registry: MirroredRegistry): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  const wanted = { digest, sizeBytes: bytes.length };
  for await (const part of verifiedBlob(registry.blobs('os/x'), wanted)) parts.push(part);
  return Buffer.concat(parts);
}

describe('a manifest', () => {
  test('comes from the first mirror that has it, under its prefix', async () => {
    const { registry, requests } = registryOf({ one: { body: bytes } });
    await registry.manifest('os/x', digest);
    expect(requests.map(({ url }) => url)).toEqual([
      `https://one.example.org/v2/origin/os/x/manifests/${digest}`,
    ]);
  });

  test('comes from the registry where mirrors are away or send something else', async () => {
    const { registry, requests } = registryOf({ two: { body: 'other' }, origin: { body: bytes } });
    expect(Buffer.from(await registry.manifest('os/x', digest)).equals(bytes)).toBe(true);
    expect(hosts(requests)).toEqual(['one.example.org', 'two.example.org', 'origin.example.org']);
    expect(requests[1]?.url).toMatch(/^http:/);
  });

  test('is asked of no mirror again that is away, until the registry fails too', async () => {
    let status = 200;
    const origin = (): Page => ({ status, body: bytes });
    const { registry, requests } = registryOf({ two: { status: 404 }, origin });
    await registry.manifest('os/x', digest);
    await registry.manifest('os/x', digest);
    const two = ['two.example.org', 'origin.example.org'];
    expect(hosts(requests)).toEqual(['one.example.org', ...two, ...two]);
    status = 500;
    for (const asked of [two, ['one.example.org', ...two]]) {
      requests.length = 0;
      await expect(registry.manifest('os/x', digest)).rejects.toThrow('answers 500');
      expect(hosts(requests)).toEqual(asked);
    }
  });

  test('a manifest that nobody has is told in the words of registry and mirrors', async () => {
    const { registry } = registryOf({ two: { status: 401 }, origin: { status: 404 } });
    await expect(registry.manifest('os/x', digest)).rejects.toMatchObject({
      kind: 'notFound',
      message: expect.stringMatching(
        /^origin\.example\.org has no os\/x@.*mirrors: one\.example\.org answers 503.*; two/,
      ),
    });
  });
});

test('no mirror says what a tag names, nor sees the credential', async () => {
  const asksFor = { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } };
  const { registry, requests } = registryOf({
    one: asksFor,
    two: asksFor,
    origin: ({ headers }) => (headers['authorization'] === undefined ? asksFor : { body: bytes }),
  });
  expect(await registry.resolve('os/x', 'latest')).toMatchObject({ digest });
  expect(new Set(hosts(requests))).toEqual(new Set(['origin.example.org']));
  await registry.manifest('os/x', digest);
  const shown = requests.filter(({ headers }) => headers['authorization'] !== undefined);
  expect(new Set(hosts(shown))).toEqual(new Set(['origin.example.org']));
});

describe('a blob', () => {
  test('a blob that a mirror alters is refused, and then asked for at the next place', async () => {
    const { registry, requests } = registryOf({
      one: { body: Buffer.from(bytes).fill(0, 3, 4) },
      two: { body: bytes },
    });
    const source = registry.blobs('os/x');
    const wanted = { digest, sizeBytes: bytes.length };
    const whole = async (): Promise<number> => {
      let length = 0;
      for await (const part of verifiedBlob(source, wanted)) length += part.length;
      return length;
    };
    await expect(whole()).rejects.toMatchObject({ kind: 'digestMismatch' });
    expect(source.elsewhere?.(digest)).toBe(true);
    expect(await whole()).toBe(bytes.length);
    expect(hosts(requests)).toEqual(['one.example.org', 'two.example.org']);
    expect(source.elsewhere?.(digest)).toBe(true);
    expect(source.elsewhere?.(digest)).toBe(false);
  });

  test('is continued at the byte where a mirror went away', async () => {
    let asked = 0;
    const { registry, requests } = registryOf({
      one: () => {
        asked += 1;
        return asked === 1 ? { body: bytes, breaksAfter: 10 } : { status: 503 };
      },
      two: ({ headers }) => {
        expect(headers['range']).toBe('bytes=10-');
        return {
          status: 206,
          headers: { 'content-range': `bytes 10-${bytes.length - 1}/${bytes.length}` },
          body: bytes.subarray(10),
        };
      },
    });
    expect((await read(registry)).equals(bytes)).toBe(true);
    expect(hosts(requests)).toEqual(['one.example.org', 'one.example.org', 'two.example.org']);
  });
});

test('more mirrors than the limit are refused', () => {
  const { web } = pagesWeb(() => ({}));
  const many = Array.from({ length: 9 }, () => ({ ...access, prefix: '' }));
  expect(() => new MirroredRegistry(web, access, many)).toThrow('has 9 mirrors; at most 8');
});
