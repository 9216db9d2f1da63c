/** Browsers at the operators' port of a whole control plane: pages, sign-ins, provider. */
import { createHash, generateKeyPairSync } from 'node:crypto';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { createServer, request as httpsRequest, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { nodeRandom, nodeWebClient } from '@rackwright/platform/node';
import { selfSigned } from '@rackwright/sim/loopback';
import { MemoryDisk, openMemoryStore, StoreError } from '@rackwright/store';
import { exportJWK, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accessTable } from '../access/index.ts';
import type { ControlPlane } from '../control-plane.ts';
import { methods, pathOf } from '../services/every-method.fixture.ts';
import {
  type Extras,
  type Fixture,
  settled,
  startFixture,
  startOn,
} from '../services/rpc.fixture.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
let provider: Server;
let issuer: string;
let fixture: Fixture;
let host: string;
const disk = new MemoryDisk();
let extras: Extras;
/** The requests to the provider, and the content of its next ID token. */
let exchanged: URLSearchParams[] = [];
let claims: Record<string, unknown> = {};

beforeAll(async () => {
  const { keyPem, certificatePem } = await selfSigned('idp', '127.0.0.1');
  provider = createServer({ key: keyPem, cert: certificatePem }, (request, response) => {
    void answerAs(request.url ?? '', () => text(request)).then((body) =>
      response.end(JSON.stringify(body)),
    );
  });
  await new Promise<void>((resolve) => provider.listen(0, '127.0.0.1', resolve));
  issuer = `https://127.0.0.1:${(provider.address() as AddressInfo).port}`;
  const roles = [{ value: 'team-a', role: 'operator', racks: ['aa-rack'] }];
  const browser = { clientId: 'console' };
  extras = {
    disk,
    config: { oidc: { issuer, audience: 'rackwright', roles, browser } },
    platform: {
      oidcWebClient: nodeWebClient([certificatePem]),
      consoleFiles: new Map([
        [
          'index.html',
          Buffer.from('<!doctype html><script src="/assets/index-B1x9aQzK.js"></script>'),
        ],
        ['assets/index-B1x9aQzK.js', Buffer.from(`console.log('${'x'.repeat(4_000)}')`)],
      ]),
    },
  };
  fixture = await startFixture(extras);
  host = `127.0.0.1:${fixture.controlPlane.operatorsPort}`;
});

afterAll(async () => {
  await fixture.stop();
  provider.closeAllConnections();
  await new Promise<void>((resolve) => provider.close(() => resolve()));
});

async function answerAs(path: string, body: () => Promise<string>): Promise<unknown> {
  if (path === '/keys') {
    return { keys: [{ ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256' }] };
  }
  if (path !== '/token') {
    const endpoints = {
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
    };
    return { issuer, jwks_uri: `${issuer}/keys`, ...endpoints };
  }
  exchanged.push(new URLSearchParams(await body()));
  const token = await new SignJWT(claims)
    .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
    .setIssuer(issuer)
    .setSubject('ann')
    .setAudience('console')
    .setExpirationTime('60 s')
    .sign(privateKey);
  return { id_token: token };
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

function ask(
  method: string,
  path: string,
  headers: Record<string, string> = {},
  body?: string,
  at = host,
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const ca = fixture.controlPlane.identity.caCertificatePem;
    const url = `https://${at}${path}`;
    const asked = httpsRequest(url, { method, headers, ca, agent: false }, (response) => {
      void text(response).then((body) =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body }),
      );
    });
    asked.on('error', reject).end(body);
  });
}

const own = (at = host) => ({ origin: `https://${at}`, 'content-type': 'application/json' });
const cookieOf = ({ headers }: Answer, name: string): string =>
  headers['set-cookie']?.find((each) => each.startsWith(name)) ?? '';
const pairOf = (cookie: string): string => cookie.split(';')[0] ?? '';

async function signInByToken(token: string): Promise<string> {
  const answer = await ask('POST', '/auth/token', own(), JSON.stringify({ token }));
  expect(answer.status).toBe(200);
  return pairOf(cookieOf(answer, '__Host-rackwright-session'));
}

const whoAmI = '/rackwright.v1.AccessService/WhoAmI';

describe('a probe', () => {
  test('is answered without a token: alive, ready, and which version', async () => {
    expect(await ask('GET', '/healthz')).toMatchObject({ status: 200, body: 'ok\n' });
    expect(await ask('GET', '/readyz')).toMatchObject({ status: 200, body: 'ok\n' });
    expect(JSON.parse((await ask('GET', '/version')).body)).toEqual({
      version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    });
    expect(await ask('HEAD', '/healthz')).toMatchObject({ status: 200, body: '' });
    expect((await ask('POST', '/healthz')).status).toBe(405);
  });
});

describe('the console', () => {
  test('is served with a strict policy, by any address of a view', async () => {
    for (const path of ['/', '/hosts/h1']) {
      const { status, headers, body } = await ask('GET', path);
      expect(status).toBe(200);
      expect(body).toContain('<!doctype html>');
      expect(headers['cache-control']).toBe('no-cache');
      const policy = String(headers['content-security-policy']);
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).not.toMatch(/unsafe|https:|\*/);
    }
  });

  test('has files that are kept for ever, packed as the browser takes them', async () => {
    const path = '/assets/index-B1x9aQzK.js';
    const plain = await ask('GET', path);
    expect(plain.headers).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-type': 'text/javascript; charset=utf-8',
    });
    for (const coding of ['br', 'gzip']) {
      const packed = await ask('GET', path, { 'accept-encoding': coding });
      expect(packed.headers['content-encoding']).toBe(coding);
      expect(Number(packed.headers['content-length'])).toBeLessThan(400);
      const again = { 'accept-encoding': coding, 'if-none-match': String(packed.headers.etag) };
      expect(await ask('GET', path, again)).toMatchObject({ status: 304, body: '' });
    }
    const refused = await ask('GET', path, { 'accept-encoding': 'br;q=0, identity' });
    expect(refused.headers['content-encoding']).toBeUndefined();
  });

  test.each(['/../etc/passwd', '/assets/../index.html', '/%2e%2e/etc/passwd', '/assets/none.js'])(
    'has nothing at %s',
    async (path) => {
      const answer = await ask('GET', path);
      expect(answer.status === 404 || answer.body.includes('<!doctype html>')).toBe(true);
      expect(answer.body).not.toContain('root:');
    },
  );
});

describe('a sign-in by a token', () => {
  test('is a cookie that no script reads and no other site sends', async () => {
    const answer = await ask('POST', '/auth/token', own(), `{"token":"${fixture.token}"}`);
    expect(cookieOf(answer, '__Host-rackwright-session')).toMatch(
      /^__Host-rackwright-session=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict; Max-Age=/,
    );
    expect(answer.body).not.toContain(fixture.token);
  });

  test('carries what the token carries, and ends with it', async () => {
    const made = await fixture.access.createToken({
      tokenId: 'browser',
      token: { role: 1, purpose: 'a look', expireTime: { seconds: soonSeconds() } },
    });
    const cookie = await signInByToken(made.secret);
    const known = await ask('POST', whoAmI, { ...own(), cookie }, '{}');
    expect(JSON.parse(known.body)).toMatchObject({ actor: 'token:browser', role: 'ROLE_VIEWER' });
    await fixture.access.deleteToken({ name: 'tokens/browser', reason: 'lost' });
    const refused = await ask('POST', whoAmI, { ...own(), cookie }, '{}');
    expect([refused.status, reasonIn(refused)]).toEqual([401, 'TOKEN_REVOKED']);
  });

  test.each([
    ['of another site', { origin: 'https://other.example' }],
    ['that names no origin', {}],
    ['of a page without one', { origin: 'null' }],
    ['of the same host by plain HTTP', { origin: 'http://HOST' }],
  ])('counts nothing in a call %s', async (_which, given: Record<string, string>) => {
    const cookie = await signInByToken(fixture.token);
    const headers: Record<string, string> = { 'content-type': 'application/json', cookie };
    if (given['origin'] !== undefined) headers['origin'] = given['origin'].replace('HOST', host);
    const answer = await ask('POST', whoAmI, headers, '{}');
    expect([answer.status, reasonIn(answer)]).toEqual([403, 'ORIGIN_WRONG']);
    const opened = await ask('POST', '/auth/token', headers, `{"token":"${fixture.token}"}`);
    expect([opened.status, opened.headers['set-cookie']]).toEqual([403, undefined]);
  });

  test('ends when its person signs out', async () => {
    const cookie = await signInByToken(fixture.token);
    const out = await ask('POST', '/auth/sign-out', { ...own(), cookie });
    expect(out.status).toBe(204);
    expect(cookieOf(out, '__Host-rackwright-session')).toContain('Max-Age=0');
    const answer = await ask('POST', whoAmI, { ...own(), cookie }, '{}');
    expect([answer.status, reasonIn(answer)]).toEqual([401, 'SESSION_OVER']);
  });

  test('is forgotten by its browser also while the store is away', async () => {
    const cookie = await signInByToken(fixture.token);
    const { store } = fixture;
    const get = store.get.bind(store);
    store.get = async () => {
      throw new StoreError('unavailable', 'away');
    };
    try {
      const out = await ask('POST', '/auth/sign-out', { ...own(), cookie });
      expect(out.status).toBe(503);
      expect(cookieOf(out, '__Host-rackwright-session')).toContain('Max-Age=0');
    } finally {
      store.get = get;
    }
  });

  test('ends, in every browser, when an administrator signs its person out', async () => {
    const made = await fixture.access.createToken({
      tokenId: 'left',
      token: { role: 1, expireTime: { seconds: soonSeconds() } },
    });
    const cookies = [await signInByToken(made.secret), await signInByToken(made.secret)];
    const endAll = (actor: string) => fixture.access.endSessions({ actor, reason: 'has left' });
    await expect(endAll('ann')).rejects.toThrow('is "ann"; it must name somebody');
    expect((await endAll('token:left')).ended).toBe(2);
    for (const cookie of cookies) {
      const answer = await ask('POST', whoAmI, { ...own(), cookie }, '{}');
      expect([answer.status, reasonIn(answer)]).toEqual([401, 'SESSION_OVER']);
    }
  });

  test('is not opened by what is no token of ours', async () => {
    const wrong = await ask('POST', '/auth/token', own(), '{"token":"rwo1.x.y"}');
    expect([wrong.status, wrong.headers['set-cookie']]).toEqual([401, undefined]);
    const none = await ask('POST', '/auth/token', own(), '{"token":7}');
    expect([none.status, reasonIn(none)]).toEqual([400, 'FIELD_VIOLATIONS']);
  });
});

describe('a sign-in by the identity provider', () => {
  async function begin(returnTo = '/hosts'): Promise<{ at: URL; cookie: string }> {
    const answer = await ask('GET', `/auth/sign-in?return=${encodeURIComponent(returnTo)}`);
    expect(answer.status).toBe(303);
    const cookie = cookieOf(answer, '__Host-rackwright-sign-in');
    expect(cookie).toContain('HttpOnly; SameSite=Lax; Max-Age=600');
    return { at: new URL(String(answer.headers.location)), cookie: pairOf(cookie) };
  }

  function comeBack({ at, cookie }: { at: URL; cookie: string }, more = ''): Promise<Answer> {
    claims = { roles: ['team-a'], nonce: at.searchParams.get('nonce'), ...claims };
    const state = at.searchParams.get('state') ?? '';
    return ask('GET', `/auth/callback?code=c1&state=${state}${more}`, { cookie });
  }

  test('is opened for the code that it led back with, by PKCE', async () => {
    claims = {};
    exchanged = [];
    const begun = await begin();
    expect(begun.at.href.startsWith(`${issuer}/authorize?`)).toBe(true);
    const asked = Object.fromEntries(begun.at.searchParams);
    expect(asked).toMatchObject({
      ...{ response_type: 'code', client_id: 'console', code_challenge_method: 'S256' },
      ...{ redirect_uri: `https://${host}/auth/callback`, scope: 'openid profile email' },
    });
    const answer = await comeBack(begun);
    expect([answer.status, answer.headers.location]).toEqual([303, '/hosts']);
    const [exchange] = exchanged;
    const verifier = exchange?.get('code_verifier') ?? '';
    const challenge = createHash('sha256').update(verifier).digest('base64url');
    expect(challenge).toBe(asked['code_challenge']);
    const cookie = pairOf(cookieOf(answer, '__Host-rackwright-session'));
    const known = await ask('POST', whoAmI, { ...own(), cookie }, '{}');
    expect(JSON.parse(known.body)).toMatchObject({
      ...{ actor: 'oidc:ann', role: 'ROLE_OPERATOR', issuer },
      scope: { racks: ['racks/aa-rack'] },
    });
  });

  test.each(['//other.example', '/\\other.example', 'https://other.example', 'hosts'])(
    'leads to no other address, as %s',
    async (returnTo) => {
      claims = {};
      const answer = await comeBack(await begin(returnTo));
      expect(answer.headers.location).toBe('/');
    },
  );

  interface Wrong {
    readonly claims?: Record<string, unknown>;
    readonly more?: string;
    readonly state?: string;
    readonly cookie?: string;
  }

  const wrongs: readonly [string, Wrong, string][] = [
    ['another sign-in’s nonce', { claims: { nonce: 'another' } }, 'TOKEN_WRONG'],
    ['another state', { state: 'another' }, 'SIGN_IN_NOT_BEGUN'],
    ['another browser', { cookie: '__Host-rackwright-sign-in=eHh4' }, 'SIGN_IN_NOT_BEGUN'],
    ['an error', { more: '&error=access_denied' }, 'SIGN_IN_REFUSED'],
    ['another issuer', { more: '&iss=https://other.example' }, 'SIGN_IN_NOT_BEGUN'],
    ['no role', { claims: { roles: ['visitors'] } }, 'NO_ROLE'],
  ];

  test.each(wrongs)('is not opened with %s', async (_what, wrong, reason) => {
    claims = wrong.claims ?? {};
    const begun = await begin();
    if (wrong.state !== undefined) begun.at.searchParams.set('state', wrong.state);
    const answer = await comeBack({ ...begun, cookie: wrong.cookie ?? begun.cookie }, wrong.more);
    expect(answer.headers.location).toBe(`/sign-in?error=${reason}`);
    expect(cookieOf(answer, '__Host-rackwright-session')).toBe('');
  });

  test('is offered where there is one', async () => {
    const { body } = await ask('GET', '/auth/options');
    expect(JSON.parse(body)).toEqual({ token: true, issuer });
  });
});

describe('another control plane on the store', () => {
  let folder: string;
  let other: ControlPlane;
  let there: string;

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'rackwright-web-'));
    await cp(join(fixture.controlPlane.identity.folder.path, '..'), folder, { recursive: true });
    await startOther();
  });

  afterAll(async () => {
    await other.close();
    await rm(folder, { recursive: true });
  });

  async function startOther(): Promise<void> {
    const store = await openMemoryStore({ random: nodeRandom(), disk });
    other = await startOn(folder, store, undefined, extras);
    there = `127.0.0.1:${other.operatorsPort}`;
  }

  const who = async (at: string, cookie: string) => {
    const { status, body } = await ask('POST', whoAmI, { ...own(at), cookie }, '{}', at);
    return status === 200 ? (JSON.parse(body) as { actor: string }).actor : status;
  };

  test('knows who has signed in at the first, and still does when it is restarted', async () => {
    const cookie = await signInByToken(fixture.token);
    expect(await who(there, cookie)).toBe('user:admin');
    await other.close();
    await startOther();
    expect(await who(there, cookie)).toBe('user:admin');
  });

  test('knows no more who has signed out at the first, and the other way round', async () => {
    for (const [at, elsewhere] of [
      [host, there],
      [there, host],
    ] as const) {
      const cookie = await signInByToken(fixture.token);
      expect([await who(at, cookie), await who(elsewhere, cookie)]).not.toContain(401);
      const out = await ask('POST', '/auth/sign-out', { ...own(at), cookie }, undefined, at);
      expect(out.status).toBe(204);
      expect([await who(at, cookie), await who(elsewhere, cookie)]).toEqual([401, 401]);
    }
  });

  test('ends the sign-in at the provider that was begun at the first', async () => {
    const begun = await ask('GET', '/auth/sign-in?return=/');
    const query = new URL(String(begun.headers.location)).searchParams;
    claims = { roles: ['team-a'], nonce: query.get('nonce') };
    const cookie = pairOf(cookieOf(begun, '__Host-rackwright-sign-in'));
    const back = `/auth/callback?code=c1&state=${query.get('state')}`;
    const answer = await ask('GET', back, { cookie }, undefined, there);
    const session = pairOf(cookieOf(answer, '__Host-rackwright-session'));
    expect([await who(there, session), await who(host, session)]).toEqual(['oidc:ann', 'oidc:ann']);
  });
});

test('a sign-in that reads writes nothing, whatever it reads', async () => {
  const cookie = await signInByToken(fixture.token);
  const reading = methods.filter(
    (method) => method.methodKind === 'unary' && accessTable[pathOf(method)]?.changes === false,
  );
  expect(reading.length).toBeGreaterThan(30);
  await ask('POST', whoAmI, { ...own(), cookie }, '{}');
  await settled(fixture.store);
  const before = disk.latest();
  for (const method of reading) {
    const answer = await ask('POST', `/${pathOf(method)}`, { ...own(), cookie }, '{}');
    expect(answer.status).not.toBe(401);
  }
  expect(disk.after(before, '', 100).map(({ key }) => key)).toEqual([]);
});

function reasonIn({ body }: Answer): unknown {
  const { details } = JSON.parse(body) as { details: { debug: { reason: string } }[] };
  return details[0]?.debug.reason;
}

function soonSeconds(): bigint {
  return BigInt(Math.floor(Date.now() / 1_000) + 3_600);
}
