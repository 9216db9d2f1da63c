/**
 * Tokens of an identity provider that really listens on HTTPS, and signs valid and invalid tokens.
 */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { ApiFailure, Role } from '@rackwright/messages';
import { ConfigError, ConfigReader } from '@rackwright/platform';
import { nodeClock, nodeWebClient } from '@rackwright/platform/node';
import { quietLog as log } from '@rackwright/platform/testing';
import { selfSigned } from '@rackwright/sim/loopback';
import { exportJWK, SignJWT } from 'jose';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createOidcVerifier } from './oidc.ts';
import { type OidcConfig, readOidc } from './oidc-config.ts';
import { OidcKeys } from './oidc-keys.ts';
import { createSignIn, type TokenVerifier } from './sign-in.ts';

interface Key {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

let server: Server;
let issuer = '';
let served: Key[] = [];
let requests: string[] = [];
let answer: ((path: string) => { status: number; body: string } | undefined) | undefined;
let shiftMs = 0;
let verifier: TokenVerifier;
let config: OidcConfig;
let caPem = '';

function newKey(kid: string): Key {
  return { kid, alg: 'ES256', ...generateKeyPairSync('ec', { namedCurve: 'P-256' }) };
}

const nowSeconds = () => Math.floor((nodeClock().nowMs() + shiftMs) / 1_000);

async function jwks(): Promise<string> {
  const keys = served.map(async ({ publicKey, kid, alg }) => ({
    ...(await exportJWK(publicKey)),
    ...{ kid, alg, use: 'sig' },
  }));
  return JSON.stringify({ keys: await Promise.all(keys) });
}

beforeEach(async () => {
  const { keyPem, certificatePem } = await selfSigned('idp', '127.0.0.1');
  caPem = certificatePem;
  server = createServer({ key: keyPem, cert: certificatePem }, (request, response) => {
    const path = request.url ?? '';
    requests.push(path);
    void (async () => {
      const special = answer?.(path);
      const body = path.endsWith('/openid-configuration')
        ? JSON.stringify({ issuer, jwks_uri: `${issuer}/keys` })
        : await jwks();
      response.writeHead(special?.status ?? 200).end(special?.body ?? body);
    })();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  served = [newKey('k1')];
  requests = [];
  answer = undefined;
  shiftMs = 0;
  config = configOf({});
  verifier = verifierOf(config);
});

afterEach(() => close());

function close(): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

function configOf(more: object): OidcConfig {
  const section = {
    ...{ issuer, audience: 'rackwright', usernameClaim: 'preferred_username' },
    roles: [
      { value: 'rw-admins', role: 'admin' },
      { value: 'rw-berlin', role: 'operator', racks: ['r1'], pools: ['gpu'] },
    ],
    ...more,
  };
  return readOidc(new ConfigReader(section, 'oidc'));
}

function verifierOf(of: OidcConfig): TokenVerifier {
  const base = nodeClock();
  const clock = {
    nowMs: () => base.nowMs() + shiftMs,
    after: base.after.bind(base),
  };
  const keys = new OidcKeys(of.issuer, { clock: clock as never, log }, nodeWebClient([caPem]));
  return createOidcVerifier(of, clock as never, keys);
}

interface Said {
  readonly key?: Key;
  readonly claims?: Record<string, unknown>;
  readonly aud?: string;
  readonly iss?: string;
  readonly exp?: number;
  readonly nbf?: number;
}

/** A token that is valid except for the given fields. */
async function signed({ key = served[0], claims, aud, iss, exp, nbf }: Said = {}): Promise<string> {
  if (key === undefined) throw new Error('no key');
  const { alg, kid, privateKey } = key;
  const token = new SignJWT({ preferred_username: 'ann', roles: ['rw-admins'], ...claims })
    .setProtectedHeader({ alg, kid })
    .setIssuer(iss ?? issuer)
    .setSubject('1234')
    .setAudience(aud ?? 'rackwright')
    .setExpirationTime(exp ?? nowSeconds() + 600);
  if (nbf !== undefined) token.setNotBefore(nbf);
  return token.sign(privateKey);
}

async function failure(token: string) {
  const error = await verifier.principalOf(token).then(
    (principal) => new Error(`let in: ${principal.actor}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof ApiFailure)) throw error;
  return error.error;
}

const reason = async (token: string) => (await failure(token)).reason;
const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url');

test('a token of the provider is let in, with the role that its claims carry', async () => {
  const exp = nowSeconds() + 600;
  expect(await verifier.principalOf(await signed({ exp }))).toMatchObject({
    actor: 'oidc:ann',
    role: Role.ADMIN,
    scope: { racks: [], pools: [] },
    issuer,
    expireMs: (exp + 30) * 1_000,
  });
  const claims = { roles: 'rw-berlin' };
  expect(await verifier.principalOf(await signed({ claims }))).toMatchObject({
    role: Role.OPERATOR,
    scope: { racks: ['racks/r1'], pools: ['gpu'] },
  });
  verifier = verifierOf(configOf({ rolesClaim: 'realm_access.roles', usernameClaim: 'sub' }));
  const nested = { roles: [], realm_access: { roles: ['x', 'rw-berlin'] } };
  expect(await verifier.principalOf(await signed({ claims: nested }))).toMatchObject({
    actor: 'oidc:1234',
    role: Role.OPERATOR,
  });
});

test('no caller has a role by default, or a name that looks like another one', async () => {
  expect(await failure(await signed({ claims: { roles: ['other'] } }))).toMatchObject({
    kind: 'permissionDenied',
    reason: 'NO_ROLE',
    message: expect.stringContaining('claim "roles"'),
  });
  expect(await reason(await signed({ claims: { roles: undefined } }))).toBe('NO_ROLE');
  for (const preferred_username of [undefined, '', 'a b', 'a\n', 7, 'x'.repeat(129)]) {
    const token = await signed({ claims: { preferred_username } });
    expect(await reason(token)).toBe('TOKEN_WITHOUT_NAME');
  }
});

test('time, audience and issuer are checked, each with words of its own', async () => {
  const now = nowSeconds();
  expect(await reason(await signed({ exp: now - 31 }))).toBe('TOKEN_EXPIRED');
  await verifier.principalOf(await signed({ exp: now - 20 }));
  expect(await reason(await signed({ nbf: now + 60 }))).toBe('TOKEN_NOT_YET');
  await verifier.principalOf(await signed({ nbf: now + 20 }));
  expect(await failure(await signed({ aud: 'another' }))).toMatchObject({
    reason: 'TOKEN_WRONG_AUDIENCE',
    message: expect.stringContaining('whose audience is rackwright'),
  });
  expect(await reason(await signed({ iss: 'https://evil.example' }))).toBe('TOKEN_WRONG');
  const { privateKey, kid } = served[0] ?? newKey('x');
  const endless = await new SignJWT({ preferred_username: 'ann', roles: ['rw-admins'] })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer(issuer)
    .setAudience('rackwright')
    .sign(privateKey);
  expect(await reason(endless)).toBe('TOKEN_WRONG');
});

test('a token that no private key of the provider has signed is refused', async () => {
  const token = await signed();
  const [header = '', body = '', signature = ''] = token.split('.');
  const none = (alg: string) => `${part({ alg, kid: 'k1' })}.${body}.`;
  for (const alg of ['none', 'None', 'NONE']) expect(await reason(none(alg))).toBe('TOKEN_WRONG');
  // The public key, which is public, as if it were a shared secret.
  const pem = served[0]?.publicKey.export({ type: 'spki', format: 'pem' }).toString() ?? '';
  const confused = await new SignJWT({ preferred_username: 'ann', roles: ['rw-admins'] })
    .setProtectedHeader({ alg: 'HS256', kid: 'k1' })
    .setIssuer(issuer)
    .setAudience('rackwright')
    .setExpirationTime(nowSeconds() + 600)
    .sign(new TextEncoder().encode(pem));
  expect(await reason(confused)).toBe('TOKEN_WRONG');
  const more = part({ ...JSON.parse(Buffer.from(body, 'base64url').toString()), aud: 'x' });
  expect(await reason(`${header}.${more}.${signature}`)).toBe('TOKEN_WRONG');
  expect(await reason(await signed({ key: { ...newKey('k1') } }))).toBe('TOKEN_WRONG');
  // A key in the token's own header is not trusted.
  const own = newKey('own');
  const embedded = await new SignJWT({ preferred_username: 'ann', roles: ['rw-admins'] })
    .setProtectedHeader({ alg: 'ES256', jwk: await exportJWK(own.publicKey), kid: 'k1' })
    .setIssuer(issuer)
    .setAudience('rackwright')
    .setExpirationTime(nowSeconds() + 600)
    .sign(own.privateKey);
  expect(await reason(embedded)).toBe('TOKEN_WRONG');
  for (const odd of ['a.b.c', '..', `${header}..`, `${part({})}.${body}.${signature}`]) {
    expect(await reason(odd)).toBe('TOKEN_WRONG');
  }
});

test('a shared secret in the key set is no key', async () => {
  answer = (path) =>
    path === '/keys'
      ? {
          status: 200,
          body: JSON.stringify({ keys: [{ kty: 'oct', kid: 'k1', k: 'c2VjcmV0', alg: 'HS256' }] }),
        }
      : undefined;
  expect(await reason(await signed())).toBe('TOKEN_WRONG');
});

test('a new key is looked for once, a flood of unknown ones as well', async () => {
  await verifier.principalOf(await signed());
  expect(requests).toEqual(['/.well-known/openid-configuration', '/keys']);
  const next = newKey('k2');
  served = [...served, next];
  // Directly after a fetch there is none: the limit applies to all tokens.
  expect(await reason(await signed({ key: next }))).toBe('TOKEN_WRONG');
  shiftMs += 31_000;
  expect((await verifier.principalOf(await signed({ key: next }))).actor).toBe('oidc:ann');
  expect(requests).toHaveLength(4);
  shiftMs += 31_000;
  const flood = Array.from({ length: 200 }, async (_, index) => {
    return reason(await signed({ key: newKey(`unknown-${index}`) }));
  });
  expect(new Set(await Promise.all(flood))).toEqual(new Set(['TOKEN_WRONG']));
  expect(requests).toHaveLength(6);
  await verifier.principalOf(await signed());
});

test('keys that are known go on while the provider is away, for a day', async () => {
  const token = await signed({ exp: nowSeconds() + 30 * 86_400 });
  await verifier.principalOf(token);
  await close();
  shiftMs += 23 * 3_600_000;
  expect((await verifier.principalOf(token)).actor).toBe('oidc:ann');
  shiftMs += 2 * 3_600_000;
  expect(await failure(token)).toMatchObject({
    kind: 'unavailable',
    reason: 'ISSUER_UNAVAILABLE',
    message: expect.stringContaining(issuer),
  });
});

test('before its keys are known nobody is let in, and all are told why', async () => {
  const token = await signed();
  for (const [body, text] of [
    ['{"issuer":"https://other.example"}', 'is of "https://other.example"'],
    [`{"issuer":"${issuer}","jwks_uri":"http://127.0.0.1/keys"}`, 'no https address'],
    ['[', 'JSON'],
    [`"${'x'.repeat(300_000)}"`, 'more than 262144 bytes'],
  ] as const) {
    answer = () => ({ status: 200, body });
    verifier = verifierOf(config);
    expect(await failure(token)).toMatchObject({
      kind: 'unavailable',
      message: expect.stringContaining(text),
    });
  }
  answer = () => ({ status: 503, body: '' });
  verifier = verifierOf(config);
  expect((await failure(token)).message).toContain('it answered 503');
  answer = undefined;
  expect(await reason(token)).toBe('ISSUER_UNAVAILABLE');
  shiftMs += 31_000;
  await verifier.principalOf(await signed());
});

test('a provider whose certificate is signed by nobody whom we trust is refused', async () => {
  const { certificatePem } = await selfSigned('another', '127.0.0.1');
  caPem = certificatePem;
  verifier = verifierOf(config);
  expect(await reason(await signed())).toBe('ISSUER_UNAVAILABLE');
});

test('the configuration of the provider is checked whole', () => {
  const problem = (more: object): string => {
    try {
      configOf(more);
      return 'fine';
    } catch (error) {
      if (error instanceof ConfigError) return error.message;
      throw error;
    }
  };
  expect(problem({ issuer: 'http://idp.example' })).toContain('oidc.issuer has to be an https URL');
  expect(problem({ issuer: 'https://u:p@idp.example' })).toContain('oidc.issuer');
  expect(problem({ roles: [] })).toContain('oidc.roles has to have 1 to 256 entries');
  expect(problem({ roles: [{ value: 'x', role: 'root' }] })).toContain('oidc.roles[0].role');
  expect(problem({ roles: [{ value: 'x', role: 'admin', racks: ['racks/r1'] }] })).toContain(
    'is no id of a rack',
  );
  expect(problem({ clockSkewSeconds: 301 })).toContain('clockSkewSeconds');
  expect(problem({ audience: undefined })).toContain('oidc.audience is missing');
});

test('a caller who has many tokens is one caller, and another is another', async () => {
  const quiet = () => undefined;
  const parts = { tokens: undefined as never, firstTokenSha256: '', verifier, onSignIn: quiet };
  const signIn = createSignIn(parts);
  const named = async (said: Said) => {
    const authorization = `Bearer ${await signed(said)}`;
    const header = (name: string) => (name === 'authorization' ? authorization : undefined);
    return signIn.guard({ header } as never);
  };
  const name = await named({});
  expect(name).toEqual(expect.any(String));
  expect(await named({ exp: nowSeconds() + 500 })).toBe(name);
  expect(await named({ claims: { preferred_username: 'bob' } })).not.toBe(name);
});
