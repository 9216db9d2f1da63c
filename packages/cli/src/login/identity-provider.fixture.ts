/**
 * An identity provider that really listens, by HTTPS, and gives tokens by device code (RFC 8628)
 * and refresh token (RFC 6749 §6), each of which is good once.
 */
import type { IncomingMessage } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { selfSigned } from '@rackwright/sim/loopback';

/** One provider, and what a test sees and sets of it. */
export interface IdentityProvider {
  readonly issuer: string;
  readonly caPem: string;
  /** Forms that the token endpoint received. */
  readonly forms: URLSearchParams[];
  /** What the next questions are answered with instead of tokens: an error of RFC 8628 §3.5. */
  readonly errors: string[];
  /** The life of its ID tokens, seconds. */
  lifeSeconds: number;
  /** Changes of its metadata. */
  metadata: Readonly<Record<string, unknown>>;
  close(): Promise<void>;
}

/** Signs the claims of an ID token. */
type Sign = (claims: Readonly<Record<string, unknown>>) => string | Promise<string>;

/** No signature: for clients that do not verify it. */
const unsigned: Sign = (claims) => {
  const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url');
  return `${part({ alg: 'none' })}.${part(claims)}.x`;
};

/** Starts one. `keys`: its JWKS. */
export async function startIdentityProvider(
  sign: Sign = unsigned,
  keys: unknown = { keys: [] },
): Promise<IdentityProvider> {
  const { keyPem, certificatePem } = await selfSigned('idp', '127.0.0.1');
  const server = createServer({ key: keyPem, cert: certificatePem }, (request, response) => {
    void answer(request).then(([status, body]) => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const issuer = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider: IdentityProvider = {
    ...{ issuer, caPem: certificatePem, forms: [], errors: [], lifeSeconds: 3_600, metadata: {} },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
  const given = tokensOf(provider, sign);
  return provider;

  async function answer(request: IncomingMessage): Promise<Answer> {
    if (request.url === '/.well-known/openid-configuration') return [200, metadataOf(provider)];
    if (request.url === '/keys') return [200, keys];
    const form = new URLSearchParams(await text(request));
    const isForm = request.headers['content-type'] === 'application/x-www-form-urlencoded';
    if (request.method !== 'POST' || !isForm || form.get('client_id') !== 'rackwright') {
      return [401, { error: 'invalid_client' }];
    }
    if (request.url === '/device') return [200, given.deviceCode(form)];
    provider.forms.push(form);
    const error = provider.errors.shift();
    return error === undefined ? given.tokens(form) : [400, { error }];
  }
}

type Answer = readonly [status: number, body: unknown];

function metadataOf({ issuer, metadata }: IdentityProvider) {
  return {
    issuer,
    jwks_uri: `${issuer}/keys`,
    token_endpoint: `${issuer}/token`,
    device_authorization_endpoint: `${issuer}/device`,
    ...metadata,
  };
}

/** Refresh tokens and device codes that it has given, each accepted once. */
function tokensOf(provider: IdentityProvider, sign: Sign) {
  const { issuer } = provider;
  const refreshTokens = new Set<string>();
  const deviceCodes = new Set<string>();
  let count = 0;
  return {
    deviceCode(form: URLSearchParams) {
      if (!(form.get('scope') ?? '').split(' ').includes('openid')) {
        return { error: 'invalid_scope' };
      }
      count += 1;
      deviceCodes.add(`device-${count}`);
      return {
        device_code: `device-${count}`,
        user_code: 'WDJB-MJHT',
        verification_uri: `${issuer}/activate`,
        verification_uri_complete: `${issuer}/activate?user_code=WDJB-MJHT`,
        expires_in: 600,
        interval: 1,
      };
    },
    async tokens(form: URLSearchParams): Promise<Answer> {
      const isRefresh = form.get('grant_type') === 'refresh_token';
      const [known, shown] = isRefresh
        ? [refreshTokens, form.get('refresh_token')]
        : [deviceCodes, form.get('device_code')];
      if (shown === null || !known.delete(shown)) return [400, { error: 'invalid_grant' }];
      count += 1;
      refreshTokens.add(`refresh-${count}`);
      const { lifeSeconds } = provider;
      const nowSeconds = Math.floor(Date.now() / 1_000);
      const claims = {
        ...{ iss: issuer, aud: 'rackwright', sub: 'ann', roles: ['chiefs'], jti: String(count) },
        ...{ iat: nowSeconds, exp: nowSeconds + lifeSeconds },
      };
      return [
        200,
        {
          access_token: `access-${count}`,
          id_token: await sign(claims),
          refresh_token: `refresh-${count}`,
          token_type: 'Bearer',
          expires_in: lifeSeconds,
        },
      ];
    },
  };
}
