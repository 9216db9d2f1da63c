/**
 * Callers that an identity provider authenticates: its signed tokens (JWT, as in OpenID Connect),
 * and the roles that their claims grant.
 *
 * Invariants:
 * 1. Only public-key algorithms are accepted, whatever the token itself names.
 * 2. Issuer, audience, expiry and start are checked; a token without an expiry is refused.
 * 3. There is no default role: a token without a configured claim is refused.
 */
import { createHash } from 'node:crypto';
import { timestampDate, timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  type ApiFailure,
  oidcActor,
  permissionDenied,
  unauthenticated,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from 'jose';
import type { OidcConfig } from './oidc-config.ts';
import type { OidcKeys } from './oidc-keys.ts';
import type { Principal } from './principal.ts';
import type { TokenVerifier } from './sign-in.ts';

/** Invariant 1. */
const algorithms = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'],
  ...['ES256', 'ES384', 'ES512', 'EdDSA', 'Ed25519'],
];
const nameShape = /^[\p{L}\p{N}._@+:|/=-]{1,128}$/u;

/** Checks tokens of the configured provider with these keys. */
export function createOidcVerifier(
  config: OidcConfig,
  clock: Clock,
  keys: OidcKeys,
): TokenVerifier {
  return {
    principalOf: async (token) => {
      const claims = await verified(config, clock, keys, token);
      return principalOf(config, claims, token);
    },
  };
}

/**
 * The user of an ID token, which must be for this client and for the sign-in with this nonce
 * (OpenID Connect Core 1.0 §3.1.3.7). Throws why the token is refused.
 */
export async function principalOfIdToken(
  config: OidcConfig,
  clock: Clock,
  keys: OidcKeys,
  { token, clientId, nonce }: { token: string; clientId: string; nonce: string },
): Promise<Principal> {
  const claims = await verified({ ...config, audience: clientId }, clock, keys, token);
  const { nonce: shown, azp } = claims;
  const isForUs = azp === undefined || azp === clientId;
  if (shown === nonce && isForUs) return principalOf(config, claims, token);
  const why = isForUs ? 'is of another sign-in' : 'was made for another program';
  throw refused('TOKEN_WRONG', config, why, 'Sign in there again.');
}

async function verified(
  config: OidcConfig,
  clock: Clock,
  keys: OidcKeys,
  token: string,
): Promise<JWTPayload> {
  try {
    return await check(config, clock, token, await keys.keys());
  } catch (error) {
    if (!(error instanceof errors.JWKSNoMatchingKey)) throw refusalOf(config, error);
  }
  const next = await keys.refetched();
  if (next === undefined) throw keys.trouble() ?? keyUnknown(config);
  try {
    return await check(config, clock, token, next);
  } catch (error) {
    throw refusalOf(config, error);
  }
}

/** Invariant 2. */
async function check(
  { issuer, audience, clockSkewSeconds }: OidcConfig,
  clock: Clock,
  token: string,
  keys: JWTVerifyGetKey,
): Promise<JWTPayload> {
  const { payload } = await jwtVerify(token, keys, {
    algorithms,
    issuer,
    audience,
    clockTolerance: clockSkewSeconds,
    currentDate: timestampDate(timestampFromMs(clock.nowMs())),
    requiredClaims: ['iss', 'aud', 'exp'],
  });
  return payload;
}

/** The refusal for an invalid token; an error with another cause is returned as it is. */
function refusalOf(config: OidcConfig, error: unknown): unknown {
  if (error instanceof errors.JWKSNoMatchingKey) return keyUnknown(config);
  if (error instanceof errors.JWTExpired) {
    return refused('TOKEN_EXPIRED', config, 'has expired', 'Sign in there again for a new one.');
  }
  if (error instanceof errors.JWTClaimValidationFailed) return claimWrong(config, error.claim);
  if (error instanceof errors.JOSEAlgNotAllowed) {
    const why = 'is signed in a way that is never accepted here';
    return refused('TOKEN_WRONG', config, why, 'Let it sign with RS256 or ES256, say.');
  }
  if (error instanceof errors.JOSEError) {
    const why = 'was not signed by it, or was changed since';
    return refused('TOKEN_WRONG', config, why, 'Sign in there again for a new one.');
  }
  return error;
}

function claimWrong(config: OidcConfig, claim: string): ApiFailure {
  switch (claim) {
    case 'aud':
      return refused(
        'TOKEN_WRONG_AUDIENCE',
        config,
        'was made for another program',
        `Ask it for one whose audience is ${config.audience}.`,
      );
    case 'nbf':
      return refused(
        'TOKEN_NOT_YET',
        config,
        'is not valid yet',
        'Compare the clocks of both, or raise oidc.clockSkewSeconds.',
      );
    default:
      return refused(
        'TOKEN_WRONG',
        config,
        `lacks a right claim "${claim}"`,
        'Ask it for another.',
      );
  }
}

function keyUnknown(config: OidcConfig): ApiFailure {
  const why = 'is signed by a key that it does not list';
  return refused('TOKEN_WRONG', config, why, 'Sign in there again; new keys are looked for.');
}

function refused(reason: string, { issuer }: OidcConfig, why: string, next: string): ApiFailure {
  return unauthenticated(reason, `The token of the identity provider ${issuer} ${why}. ${next}`);
}

function principalOf(config: OidcConfig, claims: JWTPayload, token: string): Principal {
  const { usernameClaim, rolesClaim, roles, issuer, clockSkewSeconds } = config;
  const name = claims[usernameClaim];
  if (typeof name !== 'string' || !nameShape.test(name)) {
    throw unauthenticated(
      'TOKEN_WITHOUT_NAME',
      `The token has no claim "${usernameClaim}" with a name of 1 to 128 letters, digits or ` +
        '. _ @ + : | / = -. Name another one in oidc.usernameClaim, or let the provider add it.',
    );
  }
  const granted = valuesOf(claims, rolesClaim);
  const found = roles.find(({ value }) => granted.includes(value));
  if (found === undefined) {
    throw permissionDenied(
      'NO_ROLE',
      `${oidcActor(name)} has no role here: the claim "${rolesClaim}" of the token has none ` +
        'of the values in oidc.roles. Ask whoever runs the identity provider for one of them.',
    );
  }
  return {
    actor: oidcActor(name),
    role: found.role,
    scope: found.scope,
    token: '',
    issuer,
    expireMs: ((claims.exp ?? 0) + clockSkewSeconds) * 1_000,
    proofSha256: createHash('sha256').update(token).digest('hex'),
  };
}

/** The values of a claim, by its name or by a path such as "realm_access.roles". */
function valuesOf(claims: JWTPayload, path: string): readonly unknown[] {
  let value: unknown = claims[path];
  if (value === undefined) {
    value = path.split('.').reduce<unknown>((at, name) => fieldOf(at, name), claims);
  }
  return Array.isArray(value) ? value : [value];
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, name)
    ? (value as Readonly<Record<string, unknown>>)[name]
    : undefined;
}
