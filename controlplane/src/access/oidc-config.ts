/** The part of the configuration that names an identity provider. */
import { isChosenId, Role } from '@rackwright/messages';
import { ConfigError, type ConfigReader } from '@rackwright/platform';
import type { Scope } from './principal.ts';

/** The role that a value of the roles claim grants. */
export interface ClaimedRole {
  readonly value: string;
  readonly role: Role;
  readonly scope: Scope;
  /** Whether it makes its holder an unscoped administrator. */
  readonly isFullAdmin: boolean;
}

export interface OidcConfig {
  /** The issuer as its tokens have it: "https://idp.example". */
  readonly issuer: string;
  /** The audience that its tokens must have. */
  readonly audience: string;
  /** PEM of the authority of its certificate, in addition to the authorities of this machine. */
  readonly caFile?: string;
  readonly rolesClaim: string;
  /** The first match counts. */
  readonly roles: readonly ClaimedRole[];
  /** The claim that has the user's name. */
  readonly usernameClaim: string;
  /** The largest permitted difference between its clock and ours. */
  readonly clockSkewSeconds: number;
  /** Sign-in by a browser; unset: only tokens are accepted. */
  readonly browser?: OidcBrowserConfig;
}

/** This control plane as a client of the provider (OpenID Connect Core 1.0 §3.1). */
export interface OidcBrowserConfig {
  readonly clientId: string;
  /** File with the secret of a confidential client; unset: PKCE alone authenticates us. */
  readonly clientSecretFile?: string;
  /** The requested scopes; "openid" is always among them. */
  readonly scopes: readonly string[];
}

const roleNames = ['viewer', 'operator', 'admin'] as const;
const rolesOf = { viewer: Role.VIEWER, operator: Role.OPERATOR, admin: Role.ADMIN } as const;
const skewSecondsMax = 300;
const rolesMax = 256;

/** Reads the section `oidc`. Throws `ConfigError`. */
export function readOidc(reader: ConfigReader): OidcConfig {
  const issuer = reader.text('issuer');
  const url = URL.parse(issuer);
  const isPlain = url?.search === '' && url.hash === '' && url.username === '';
  if (url?.protocol !== 'https:' || !isPlain) {
    throw new ConfigError('oidc.issuer has to be an https URL without query, fragment or user');
  }
  const caFile = reader.optionalText('caFile');
  const roles = reader.sections('roles', readRole);
  if (roles.length === 0 || roles.length > rolesMax) {
    throw new ConfigError(`oidc.roles has to have 1 to ${rolesMax} entries`);
  }
  const browser = reader.optionalSection('browser', readBrowser);
  return {
    issuer,
    audience: reader.text('audience'),
    ...(browser === undefined ? {} : { browser }),
    ...(caFile === undefined ? {} : { caFile }),
    rolesClaim: reader.text('rolesClaim', 'roles'),
    roles,
    usernameClaim: reader.text('usernameClaim', 'sub'),
    clockSkewSeconds: reader.whole('clockSkewSeconds', [0, skewSecondsMax], 30),
  };
}

function readBrowser(reader: ConfigReader): OidcBrowserConfig {
  const secretFile = reader.optionalText('clientSecretFile');
  const scopes = reader.texts('scopes', ['openid', 'profile', 'email']);
  const wrong = scopes.find((each) => !/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/.test(each));
  if (wrong !== undefined) {
    throw new ConfigError(`oidc.browser.scopes: ${JSON.stringify(wrong)} is no scope of OAuth 2.0`);
  }
  return {
    clientId: reader.text('clientId'),
    ...(secretFile === undefined ? {} : { clientSecretFile: secretFile }),
    scopes: [...new Set(['openid', ...scopes])],
  };
}

function readRole(reader: ConfigReader): ClaimedRole {
  const value = reader.text('value');
  const name = reader.oneOf('role', roleNames);
  const racks = reader.texts('racks', []);
  const wrong = racks.find((each) => !isChosenId(each));
  if (wrong !== undefined) {
    throw new ConfigError(`oidc.roles: ${JSON.stringify(wrong)} is no id of a rack, as in "r1"`);
  }
  const pools = reader.texts('pools', []);
  if (pools.includes('')) throw new ConfigError('oidc.roles: a pool has to have a name');
  const scope = { racks: racks.map((each) => `racks/${each}`), pools };
  const isFullAdmin = name === 'admin' && racks.length === 0 && pools.length === 0;
  return { value, role: rolesOf[name], scope, isFullAdmin };
}
