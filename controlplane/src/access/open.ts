/** The sign-in of a control plane: its tokens, its identity provider, and the records of both. */
import { createHash } from 'node:crypto';
import type { CallContext } from '@rackwright/messages';
import type { Clock, Log, Random, WebClient } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { AuditSink } from '../audit/index.ts';
import type { StoreFollower } from '../following/index.ts';
import { BrowserSignIn, type SignInSealer } from './browser-sign-in.ts';
import { type Browsers, createBrowsers } from './browsers.ts';
import { createOidcVerifier } from './oidc.ts';
import type { OidcConfig } from './oidc-config.ts';
import { OidcKeys } from './oidc-keys.ts';
import { type Principal, roleText, scopeText } from './principal.ts';
import { createSignIn, principalOfSecret, type SignIn } from './sign-in.ts';
import { SignIns } from './sign-ins.ts';
import { TokenBook } from './token-book.ts';

const hourMs = 3_600_000;
/** Callers whose last sign-in is remembered; a caller beyond that is recorded again. */
const rememberedMax = 10_000;

export interface AccessOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly following: StoreFollower;
  readonly audit: AuditSink;
  readonly firstTokenSha256: string;
  readonly oidc: OidcConfig | undefined;
  /** Reaches the identity provider. */
  readonly web: WebClient | undefined;
  /** The secret of a confidential client; undefined: the client has none. */
  readonly clientSecret: () => Promise<string | undefined>;
  /** Seals the state of a sign-in, so that every replica can finish it. */
  readonly secrets: SignInSealer;
  /** The longest sign-in of a browser. */
  readonly signInMs: number;
}

/** Authenticates callers; `start` finishes before the port opens. */
export interface Access {
  readonly signIn: SignIn;
  readonly browsers: Browsers;
  /** Whether the identity provider may make somebody an unscoped administrator. */
  readonly otherAdmins: boolean;
  start(): Promise<void>;
  stop(): void;
}

/** Opens access control: tokens, sign-ins and identity providers. */
export function openAccess(options: AccessOptions): Access {
  const { oidc, clock, audit, firstTokenSha256, signInMs: lifeMs } = options;
  const tokens = new TokenBook(options);
  const provider = providerOf(options);
  const verifier = oidc && provider && createOidcVerifier(oidc, clock, provider.keys);
  const shown = { tokens, firstTokenSha256, verifier };
  const signIns = new SignIns({
    ...{ ...options, lifeMs, configSha256: configSha256Of(oidc) },
    principalOfSecret: (name, secretSha256) => principalOfSecret(shown, name, secretSha256),
  });
  const browsers = createBrowsers({ ...options, signIns, provider: provider?.browser, shown });
  return {
    signIn: createSignIn({ ...shown, signIns, onSignIn: auditSignIns(clock, audit) }),
    browsers,
    otherAdmins: oidc?.roles.some(({ isFullAdmin }) => isFullAdmin) ?? false,
    start: async () => {
      await tokens.start();
      await signIns.start();
    },
    stop: () => {
      signIns.stop();
      tokens.stop();
    },
  };
}

/** The hash of all configuration that gives the provider's users their roles. */
function configSha256Of(oidc: OidcConfig | undefined): string {
  const { issuer, usernameClaim, rolesClaim, roles } = oidc ?? {};
  const text = JSON.stringify([issuer, usernameClaim, rolesClaim, roles]);
  return createHash('sha256').update(text).digest('hex');
}

function providerOf(options: AccessOptions) {
  const { oidc: config, web, clientSecret } = options;
  if (config === undefined || web === undefined) return undefined;
  const keys = new OidcKeys(config.issuer, options, web);
  const { browser } = config;
  if (browser === undefined) return { keys, browser: undefined };
  const parts = { ...options, config, web, browser, clientSecret, keys };
  return { keys, browser: new BrowserSignIn(parts) };
}

/** Records the first use of a credential, in this process and in each hour. */
function auditSignIns(clock: Clock, audit: AuditSink) {
  const recordedMs = new Map<string, number>();
  return (principal: Principal, context: CallContext): void => {
    const { actor, proofSha256, role, scope } = principal;
    const key = `${actor} ${proofSha256}`;
    const nowMs = clock.nowMs();
    if (Math.abs(nowMs - (recordedMs.get(key) ?? Number.NEGATIVE_INFINITY)) < hourMs) return;
    if (recordedMs.size >= rememberedMax) recordedMs.clear();
    recordedMs.set(key, nowMs);
    audit.note({
      kind: 'signIn',
      actor,
      action: 'signIn',
      resource: principal.token,
      outcome: 'ok',
      message: `role ${roleText(role)}, scope ${scopeText(scope)}`,
      peer: context.peerAddress,
    });
  };
}
