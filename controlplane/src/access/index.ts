/** Who may call what: callers, their roles and scopes, and the guard before every handler. */
export { auditVisibility } from './audit-visibility.ts';
export { beginningCookie, beginningSeconds, callbackPath } from './browser-sign-in.ts';
export type { Browsers } from './browsers.ts';
export {
  actorOf,
  type CallDependencies,
  type Factory,
  type GuardOptions,
  guarded,
} from './guard.ts';
export { HostLocations, locationsOf } from './host-locations.ts';
export { type OidcConfig, readOidc } from './oidc-config.ts';
export { type Access, type AccessOptions, openAccess } from './open.ts';
export {
  everywhere,
  includesRack,
  isInScope,
  isUnscoped,
  type Principal,
  poolLabel,
  roleText,
  type Scope,
  scopeText,
  systemPrincipal,
} from './principal.ts';
export { roleTooSmall } from './refusals.ts';
export { scopedStore, watchCollections } from './scoped-store.ts';
export {
  createSignIn,
  type SignIn,
  type SignInOptions,
  type TokenVerifier,
  trustedSignIn,
} from './sign-in.ts';
export {
  endSignInsOf,
  type OpenedSignIn,
  signInCookie,
} from './sign-ins.ts';
export {
  accessTable,
  changesSomething,
  methodsFor,
  openServices,
  type Reach,
  type Row,
} from './table.ts';
export { makeToken } from './token.ts';
export { firstTokenId, isTokenEnded, revokedFirstKey, TokenBook, tokenKey } from './token-book.ts';
