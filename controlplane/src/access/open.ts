/** The sign-in of a control plane: its tokens, its identity provider, and who is told of both. */
import { createHash } from 'node:crypto';
import type { CallContext } from '@rackwright/messages';
import type { Clock, Log, Random, WebClient } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { AuditSink } from '../audit/index.ts';
import type { Following } from '../following/index.ts';
import { BrowserSignIn, type SignInSealer } from './browser-sign-in.ts';
import { type Browsers, createBrowsers } from './browsers.ts';
import { createOidcVoucher } from './oidc.ts';
import type { OidcConfig } from './oidc-config.ts';
import { OidcKeys } from './oidc-keys.ts';
import { type Principal, roleText, scopeText } from './principal.ts';
import { Sessions } from './sessions.ts';
import { createSignIn, principalOfSecret, type SignIn } from './sign-in.ts';
import { TokenBook } from './token-book.ts';

const hourMs = 3_600_000;
/** Callers whose last sign-in is remembered; beyond that they are told anew. */
const rememberedMax = 10_000;

export interface AccessOptions {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly following: Following;
  readonly audit: AuditSink;
  readonly firstTokenSha256: string;
  readonly oidc: OidcConfig | undefined;
  /** Reaches the identity provider. */
  readonly web: WebClient | undefined;
  /** Of a confidential client of it; undefined: of none. */
  readonly clientSecret: () => Promise<string | undefined>;
  /** Seals a sign-in that has begun, so that every replica can end it. */
  readonly secrets: SignInSealer;
  /** How long somebody is signed in by a browser, at most. */
  readonly sessionMs: number;
}

/** What lets callers in; `start` has come to its end before the port opens. */
export interface Access {
  readonly signIn: SignIn;
  readonly browsers: Browsers;
  /** The identity provider may make somebody an administrator of everything. */
  readonly otherAdmins: boolean;
  start(): Promise<void>;
  stop(): void;
}

/** Opens it. */
export function openAccess(options: AccessOptions): Access {
  const { oidc, clock, audit, firstTokenSha256, sessionMs: lifeMs } = options;
  const tokens = new TokenBook(options);
  const provider = providerOf(options);
  const voucher = oidc && provider && createOidcVoucher(oidc, clock, provider.keys);
  const shown = { tokens, firstTokenSha256, voucher };
  const sessions = new Sessions({
    ...{ ...options, lifeMs, configSha256: configSha256Of(oidc) },
    principalOfSecret: (name, secretSha256) => principalOfSecret(shown, name, secretSha256),
  });
  const browsers = createBrowsers({ ...options, sessions, provider: provider?.browser, shown });
  return {
    signIn: createSignIn({ ...shown, sessions, onSignIn: tellSignIns(clock, audit) }),
    browsers,
    otherAdmins: oidc?.roles.some(({ isFullAdmin }) => isFullAdmin) ?? false,
    start: async () => {
      await tokens.start();
      await sessions.start();
    },
    stop: () => {
      sessions.stop();
      tokens.stop();
    },
  };
}

/** Of all that says who of the provider's people has which role here. */
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

/** The first use of what somebody shows, by this process and in each hour. */
function tellSignIns(clock: Clock, audit: AuditSink) {
  const toldMs = new Map<string, number>();
  return (principal: Principal, context: CallContext): void => {
    const { actor, proofSha256, role, scope } = principal;
    const who = `${actor} ${proofSha256}`;
    const nowMs = clock.nowMs();
    if (Math.abs(nowMs - (toldMs.get(who) ?? Number.NEGATIVE_INFINITY)) < hourMs) return;
    if (toldMs.size >= rememberedMax) toldMs.clear();
    toldMs.set(who, nowMs);
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
