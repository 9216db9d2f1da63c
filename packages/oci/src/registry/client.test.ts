import type { WebClient, WebLimits, WebRequest } from '@rackwright/platform';
import { describe, expect, test } from 'vitest';
import { digestOf } from '../digest.ts';
import { writeImage } from '../testing/tar-writer.ts';
import { type Page, pagesWeb, rangePage } from '../testing/web.ts';
import { RegistryClient } from './client.ts';
import { basic } from './token.ts';
import { plainBlobs } from './web-blobs.ts';

const image = writeImage([]);
const manifest = image.blobs.get(image.manifest) ?? Buffer.alloc(0);
const credential = { username: 'robot', password: 'sesame' };
const registry = 'registry.example.org';
const tokens = 'https://auth.example.org/token';
const bearer = { 'www-authenticate': `Bearer realm="${tokens}",service="s",scope="ignored"` };

function clientOf(answer: (request: WebRequest) => Page, access = {}) {
  const { web, requests } = pagesWeb(answer);
  const client = new RegistryClient(web, {
    registry,
    plainHttp: false,
    credential: undefined,
    ...access,
  });
  return { client, requests, pull: () => client.manifest('tools/check', image.manifest) };
}

const sentTo = (requests: readonly WebRequest[]) =>
  requests.map(({ url, headers }) => `${url} ${headers['authorization'] ?? '-'}`);

describe('a manifest', () => {
  const url = `https://${registry}/v2/tools/check/manifests/${image.manifest}`;

  test('is asked for by digest, with all types that are understood', async () => {
    const { pull, requests } = clientOf(() => ({ body: manifest }));
    expect(Buffer.from(await pull()).equals(manifest)).toBe(true);
    expect(requests[0]).toMatchObject({ method: 'GET', url });
    expect(requests[0]?.headers['accept']).toContain('application/vnd.oci.image.index.v1+json');
  });

  test('is refused when it is another, or too large', async () => {
    const other = clientOf(() => ({ body: `${String(manifest)} ` }));
    await expect(other.pull()).rejects.toMatchObject({ kind: 'digestMismatch' });
    const large = clientOf(() => ({ body: Buffer.alloc(4 * 1024 * 1024 + 1) }));
    await expect(large.pull()).rejects.toMatchObject({ kind: 'tooLarge' });
  });

  test.each([
    [403, 'unauthorized', 'does not give tools/check@'],
    [404, 'notFound', 'has no tools/check@'],
    [429, 'tooMany', 'answers 429'],
    [503, 'unreachable', 'answers 503'],
    [418, 'refused', 'answers 418'],
    [204, 'refused', 'answers 204'],
  ])('a manifest with status %i is %s', async (status, kind, text) => {
    const body = JSON.stringify({ errors: [{ code: 'CODE', message: 'the words\n' }, null] });
    const { pull } = clientOf(() => ({ status, body }));
    await expect(pull()).rejects.toMatchObject({
      kind,
      message: expect.stringMatching(`${text}.*\\(CODE: the words \\)`),
    });
  });

  test('is asked for by plain HTTP only where that was said', async () => {
    const { pull, requests } = clientOf(() => ({ body: manifest }), { plainHttp: true });
    await pull();
    expect(requests[0]?.url).toMatch(/^http:/);
  });

  test('a manifest of docker.io is asked for at its server', async () => {
    const { pull, requests } = clientOf(() => ({ body: manifest }), { registry: 'docker.io' });
    await pull();
    expect(requests[0]?.url).toMatch(/^https:\/\/registry-1\.docker\.io\/v2\//);
  });
});

describe('a registry with tokens', () => {
  const answer = ({ url, headers }: WebRequest): Page => {
    if (url.startsWith(tokens)) return { body: '{"token":"tok1"}' };
    if (headers['authorization'] !== 'Bearer tok1') return { status: 401, headers: bearer };
    return { body: manifest };
  };

  test('gives one to everybody, and it serves for the next request', async () => {
    const { pull, requests } = clientOf(answer);
    await pull();
    await pull();
    const url = `https://${registry}/v2/tools/check/manifests/${image.manifest}`;
    expect(sentTo(requests)).toEqual([
      `${url} -`,
      `${tokens}?service=s&scope=repository%3Atools%2Fcheck%3Apull -`,
      `${url} Bearer tok1`,
      `${url} Bearer tok1`,
    ]);
  });

  test('sees the credential only at its token service', async () => {
    const { pull, requests } = clientOf(answer, { credential, tokenService: 'auth.example.org' });
    await pull();
    expect(sentTo(requests).map((line) => line.replace(/^\S+ /, ''))).toEqual([
      '-',
      basic(credential),
      'Bearer tok1',
    ]);
  });

  test.each([
    ['another host', tokens, undefined],
    ['another host than the one that is named', tokens, 'tokens.example.org'],
    ['another port', `https://${registry}:8443/token`, undefined],
    ['another port of the one that is named', 'https://auth.example.org:8443/', 'auth.example.org'],
    ['a host that begins alike', `https://${registry}.example.net/token`, undefined],
  ])('has its credential shown to no token service at %s', async (_, realm, tokenService) => {
    const headers = { 'www-authenticate': `Bearer realm="${realm}"` };
    const own = { credential, ...(tokenService === undefined ? {} : { tokenService }) };
    const { pull, requests } = clientOf(() => ({ status: 401, headers }), own);
    await expect(pull()).rejects.toMatchObject({ kind: 'unauthorized' });
    expect(sentTo(requests).map((line) => line.replace(/^\S+ /, ''))).toEqual(['-']);
  });

  test('may have its own token service, or another one if it needs no credential', async () => {
    for (const realm of [`https://${registry}/token`, tokens]) {
      const headers = { 'www-authenticate': `Bearer realm="${realm}"` };
      const isOwn = realm !== tokens;
      const { pull, requests } = clientOf(
        ({ url, headers: sent }) => {
          if (url.startsWith(realm)) return { body: '{"token":"t"}' };
          return sent['authorization'] === 'Bearer t'
            ? { body: manifest }
            : { status: 401, headers };
        },
        isOwn ? { credential } : {},
      );
      await pull();
      expect(requests[1]?.headers['authorization']).toBe(isOwn ? basic(credential) : undefined);
    }
  });

  test('is docker.io, whose token service need not be named', async () => {
    const realm = 'https://auth.docker.io/token';
    const headers = { 'www-authenticate': `Bearer realm="${realm}"` };
    const { pull, requests } = clientOf(
      ({ url, headers: sent }) => {
        if (url.startsWith(realm)) return { body: '{"token":"t"}' };
        return sent['authorization'] === 'Bearer t' ? { body: manifest } : { status: 401, headers };
      },
      { registry: 'docker.io', credential },
    );
    await pull();
    expect(requests[1]?.headers['authorization']).toBe(basic(credential));
  });

  test.each([
    ['over plain HTTP', 'Bearer realm="http://auth.example.org/token"', 'refused'],
    ['nowhere', 'Bearer service="x"', 'refused'],
    ['with a user', 'Bearer realm="https://a:b@auth.example.org/"', 'refused'],
  ])('a registry that sends %s is not followed', async (_, header, kind) => {
    const headers = { 'www-authenticate': header };
    const { pull, requests } = clientOf(() => ({ status: 401, headers }), { credential });
    await expect(pull()).rejects.toMatchObject({ kind });
    expect(requests).toHaveLength(1);
  });

  test.each([
    [{ status: 401 }, 'unauthorized'],
    [{ status: 500 }, 'unreachable'],
    [{ body: '{}' }, 'refused'],
    [{ body: '{"token":"a\\r\\nb"}' }, 'refused'],
    [{ body: 'x'.repeat(100_000) }, 'tooLarge'],
  ])('a token service that answers %# ends in words without the secret', async (page, kind) => {
    const { pull } = clientOf(
      ({ url }) => (url.startsWith(tokens) ? page : { status: 401, headers: bearer }),
      { credential, tokenService: 'auth.example.org' },
    );
    const error = await pull().catch((found: unknown) => found);
    expect(error).toMatchObject({ kind });
    expect(String(error)).not.toContain('sesame');
  });

  test('a registry that takes no token of its own is asked twice and no more', async () => {
    const { pull, requests } = clientOf(({ url }) =>
      url.startsWith(tokens) ? { body: '{"token":"t"}' } : { status: 401, headers: bearer },
    );
    await expect(pull()).rejects.toMatchObject({ kind: 'unauthorized' });
    expect(requests).toHaveLength(3);
  });
});

describe('a registry with a password', () => {
  const headers = { 'www-authenticate': 'Basic realm="x"' };

  test('is shown it once it has asked', async () => {
    const { pull, requests } = clientOf(
      (request) =>
        request.headers['authorization'] === basic(credential)
          ? { body: manifest }
          : { status: 401, headers },
      { credential },
    );
    await pull();
    expect(requests).toHaveLength(2);
  });

  test('a registry that refuses a password is not shown it again', async () => {
    const { pull, requests } = clientOf(() => ({ status: 401, headers }), { credential });
    await expect(pull()).rejects.toMatchObject({
      kind: 'unauthorized',
      message: expect.stringContaining('to robot'),
    });
    expect(requests).toHaveLength(2);
    const without = clientOf(() => ({ status: 401, headers }));
    await expect(without.pull()).rejects.toMatchObject({ kind: 'unauthorized' });
    expect(without.requests).toHaveLength(1);
  });
});

describe('a redirect', () => {
  const to =
    (location: string) =>
    (request: WebRequest): Page =>
      request.url.startsWith(`https://${registry}/v2/`)
        ? { status: 307, headers: { location } }
        : { body: manifest };

  test('leads to another server without what was shown to this one', async () => {
    let isFirst = true;
    const { pull, requests } = clientOf(
      (request) => {
        const page = to('https://storage.example.org/x?signed')(request);
        if (!isFirst || page.status !== 307) return page;
        isFirst = false;
        return { status: 401, headers: { 'www-authenticate': 'Basic realm="x"' } };
      },
      { credential },
    );
    await pull();
    expect(sentTo(requests).at(-1)).toBe('https://storage.example.org/x?signed -');
  });

  test('a redirect to a server that wants a credential fails, and sends it none', async () => {
    const tempting = 'Bearer realm="https://storage.example.org/token", Basic realm="x"';
    const { pull, requests } = clientOf(
      (request) => {
        const page = to('https://storage.example.org/x')(request);
        const headers = { 'www-authenticate': tempting };
        return page.status === 307 ? page : { status: 401, headers };
      },
      { credential },
    );
    await expect(pull()).rejects.toMatchObject({
      kind: 'refused',
      message: expect.stringContaining(`storage.example.org, to which ${registry} redirects,`),
    });
    expect(sentTo(requests).at(-1)).toBe('https://storage.example.org/x -');
    expect(requests).toHaveLength(2);
  });

  test.each([
    ['http://storage.example.org/x', 'over plain HTTP'],
    ['https://a:b@storage.example.org/x', 'no address'],
    ['file:///etc/passwd', 'no address'],
    [`https://${registry}/v2/tools/check/again`, 'in a circle'],
  ])('a redirect to %s is not followed', async (location, text) => {
    await expect(clientOf(to(location)).pull()).rejects.toThrow(text);
  });
});

describe('a blob', () => {
  const bytes = Buffer.alloc(3_000, 'x');
  const digest = digestOf(bytes);

  async function read(page: (request: WebRequest) => Page, from: number): Promise<string> {
    const { client } = clientOf(page);
    const blob = await client.blobs('tools/check').open(digest, from, undefined);
    let length = 0;
    for await (const chunk of blob.chunks) length += chunk.length;
    return `${blob.start}+${length}`;
  }

  test('comes whole, or from where it was asked for', async () => {
    const page = ({ headers }: WebRequest) => rangePage(bytes, headers['range']);
    expect(await read(page, 0)).toBe('0+3000');
    expect(await read(page, 1_000)).toBe('1000+2000');
    expect(await read(() => ({ body: bytes }), 1_000)).toBe('0+3000');
  });

  test.each([
    [{ status: 206, headers: { 'content-range': 'bytes 7-9/10' } }],
    [{ status: 206 }],
    [{ status: 416 }],
  ])('a blob from another place is refused (%#)', async (page) => {
    await expect(read(() => page, 1_000)).rejects.toMatchObject({ kind: 'refused' });
  });

  test('a blob of an agent lies below /v2/blobs/', async () => {
    const { web, requests } = pagesWeb(({ url }) => {
      return url.endsWith('00') ? { status: 404 } : { body: bytes };
    });
    const source = plainBlobs(web, 'http://10.0.0.3:8080');
    await source.open(digest, 0, undefined);
    expect(requests[0]?.url).toBe(`http://10.0.0.3:8080/v2/blobs/${digest.replace(':', '/')}`);
    const missing = digestOf(Buffer.from('x')).replace(/..$/, '00') as typeof digest;
    await expect(source.open(missing, 0, undefined)).rejects.toMatchObject({ kind: 'notFound' });
  });

  test('a blob that its caller gives up is cancelled, and its agent is not away', async () => {
    const source = plainBlobs(pagesWeb(() => ({ body: bytes })).web, 'http://10.0.0.3:8080');
    const given = source.open(digest, 0, AbortSignal.abort());
    await expect(given).rejects.toMatchObject({ kind: 'cancelled', message: 'given up' });
  });
});

test.each([
  [{ kind: 'unreachable', message: 'nobody', mayHaveArrived: false }, 'unreachable'],
  [{ kind: 'untrusted', message: 'self-signed' }, 'untrusted'],
  [{ kind: 'noHttp', message: 'what' }, 'refused'],
  [{ kind: 'cancelled' }, 'cancelled'],
] as const)('failure %# of a connection has its own error', async (outcome, kind) => {
  const { web } = pagesWeb(() => outcome);
  const client = new RegistryClient(web, { registry, plainHttp: false, credential });
  await expect(client.manifest('a', image.manifest)).rejects.toMatchObject({ kind });
});

test('a small answer is whole in a minute; a blob may take longer, up to a limit', async () => {
  const pages = pagesWeb(({ url, headers }) => {
    if (url.startsWith(tokens)) return { body: '{"token":"t"}' };
    if (headers['authorization'] === undefined) return { status: 401, headers: bearer };
    return { body: manifest };
  });
  const floors: (WebLimits['floor'] | undefined)[] = [];
  const web: WebClient = {
    send: (request, limits, signal) => {
      floors.push(limits.floor);
      return pages.web.send(request, limits, signal);
    },
  };
  const client = new RegistryClient(web, { registry, plainHttp: false, credential: undefined });
  await client.manifest('tools/check', image.manifest);
  const whole = { bytes: Number.POSITIVE_INFINITY, everyMs: 60_000 };
  expect(floors).toEqual([whole, whole, whole]);
  await client.blobs('tools/check').open(image.manifest, 0, undefined);
  expect(floors.at(-1)).toEqual({ bytes: 65_536, everyMs: 60_000 });
});
