/** The part of the configuration that names an identity provider. */
import { isChosenId, Role } from '@rackwright/messages';
import type { ConfigReader } from '@rackwright/platform';
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

/** Reads the section `oidc`. */
export function readOidc(reader: ConfigReader): OidcConfig {
  const form = 'an https URL without query, fragment or user';
  const issuer = reader.textThat('issuer', isIssuer, form);
  const caFile = reader.optionalText('caFile');
  const roles = reader.sections('roles', readRole);
  if (roles.length === 0 || roles.length > rolesMax) {
    reader.refuse('roles', `has to have 1 to ${rolesMax} entries`);
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

function isIssuer(text: string): boolean {
  const url = URL.parse(text);
  const isPlain = url?.search === '' && url.hash === '' && url.username === '';
  return url?.protocol === 'https:' && isPlain;
}

function readBrowser(reader: ConfigReader): OidcBrowserConfig {
  const secretFile = reader.optionalText('clientSecretFile');
  const scopes = reader.texts('scopes', ['openid', 'profile', 'email']);
  for (const [index, scope] of scopes.entries()) {
    if (/^[\x21\x23-\x5b\x5d-\x7e]{1,128}$/.test(scope)) continue;
    reader.refuse(`scopes[${index}]`, `${JSON.stringify(scope)} is no scope of OAuth 2.0`);
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
  for (const [index, rack] of racks.entries()) {
    if (isChosenId(rack)) continue;
    reader.refuse(`racks[${index}]`, `${JSON.stringify(rack)} is no id of a rack, as in "r1"`);
  }
  const pools = reader.texts('pools', []);
  for (const [index, pool] of pools.entries()) {
    if (pool === '') reader.refuse(`pools[${index}]`, 'has to be the name of a pool');
  }
  const scope = { racks: racks.map((each) => `racks/${each}`), pools };
  const isFullAdmin = name === 'admin' && racks.length === 0 && pools.length === 0;
  return { value, role: rolesOf[name], scope, isFullAdmin };
}
