/** rackwright login, logout: sign-in by an identity provider (RFC 8628). */
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext, CommandIo } from '../../command-io.ts';
import {
  changeConfig,
  checkContextName,
  checkIssuer,
  defaultScope,
  type LoginSettings,
} from '../../config-file.ts';
import { InterruptedError, SignInNeeded, UsageError } from '../../failure.ts';
import { textFlag } from '../../flags.ts';
import { keep, providerOf, signInPath } from '../../login/kept-sign-in.ts';
import {
  askForTokens,
  beginDevice,
  type DeviceCode,
  type Endpoints,
  endpointsOf,
  type Provider,
  type Tokens,
} from '../../login/provider.ts';
import { clean } from '../../output/text.ts';
import { duration } from '../../output/time.ts';
import { contextInUse } from '../../settings.ts';
import { pause } from '../frame/pause.ts';
import { type ContextFlags, contextFlags } from './context-flags.ts';

/** RFC 8628 §3.5: so much longer between two questions when it asks for it. */
const slowerByMs = 5_000;

interface LoginFlags extends ContextFlags {
  readonly issuer?: string;
  readonly clientId?: string;
  readonly scope?: string;
  readonly issuerCaFile?: string;
  readonly accessToken?: boolean;
}

/** Flags of the identity provider. */
export const loginFlags = {
  issuer: textFlag('Identity provider, as https://idp.example', 'url'),
  clientId: textFlag('What it calls this program', 'id'),
  scope: textFlag(`What is asked of it; unset means "${defaultScope}"`, 'scope'),
  issuerCaFile: textFlag(
    'PEM of who signed its certificate, if this machine does not know',
    'file',
  ),
  accessToken: {
    kind: 'boolean',
    optional: true,
    brief: 'Show the control plane its access token instead of its ID token',
  },
} as const;

export const login = buildCommand({
  docs: {
    brief: briefs.login,
    fullDescription:
      'Shows an address and a code. Open the address in any browser, also on another machine, ' +
      'and type the code. The token is kept for its owner alone, and renewed as long as the ' +
      'provider permits. The values of flags are kept in the context.',
  },
  parameters: { flags: { ...contextFlags, ...loginFlags } },
  async func(this: CliContext, flags: LoginFlags) {
    const { io } = this;
    const { name = 'default', settings } = await contextInUse(io, flags);
    const wanted = loginFrom(flags, settings.login);
    const provider = await providerOf(io, wanted);
    const at = await endpointsOf(provider);
    const code = await beginDevice(provider, at);
    tell(io, code);
    const tokens = await signedIn(io, provider, at, code);
    const signIn = await keep(io, name, wanted, tokens);
    if (settings.login === undefined || isGiven(flags)) {
      const change = { at: name === 'default' ? ['login'] : ['contexts', name, 'login'] };
      await changeConfig(io, flags, [{ ...change, value: wanted }]);
    }
    const ends =
      signIn.expiresAtMs === undefined || signIn.refreshToken !== undefined
        ? ''
        : `; it ends in ${duration(Math.max(0, signIn.expiresAtMs - io.clock.nowMs()))}`;
    io.err.write(`Signed in at ${wanted.issuer}${ends}. \`rackwright whoami\` says as whom.\n`);
  },
});

export const logout = buildCommand({
  docs: {
    brief: briefs.logout,
    fullDescription: 'The token is removed here. At the identity provider it may stay valid.',
  },
  parameters: { flags: contextFlags },
  async func(this: CliContext, flags: ContextFlags) {
    const { io } = this;
    const { name = 'default' } = await contextInUse(io, flags);
    checkContextName(name);
    await io.removeFile(signInPath(io, name));
    io.err.write(`Signed out of ${name}.\n`);
  },
});

function isGiven({ issuer, clientId, scope, issuerCaFile, accessToken }: LoginFlags): boolean {
  return [issuer, clientId, scope, issuerCaFile, accessToken].some((each) => each !== undefined);
}

/** Flags take precedence over the context. Throws `UsageError`. */
export function loginFrom(flags: LoginFlags, before: LoginSettings | undefined): LoginSettings {
  const issuer = flags.issuer ?? before?.issuer;
  const clientId = flags.clientId ?? before?.clientId;
  if (issuer === undefined || clientId === undefined) {
    throw new UsageError(
      'where to sign in is not known: give --issuer URL and --client-id ID; they are kept',
    );
  }
  checkIssuer(issuer);
  const caFile = flags.issuerCaFile ?? before?.caFile;
  const isAccess = flags.accessToken ?? before?.use === 'access';
  return {
    ...{ issuer, clientId },
    scope: flags.scope ?? before?.scope ?? defaultScope,
    use: isAccess ? 'access' : 'id',
    ...(caFile === undefined ? {} : { caFile }),
  };
}

function tell({ err }: CommandIo, { completeUri, verificationUri, userCode }: DeviceCode): void {
  err.write(`Open ${clean(completeUri ?? verificationUri)}\n`);
  err.write(`and ${completeUri === undefined ? 'type' : 'compare'} the code ${clean(userCode)}\n`);
}

/** Polls at the provider's interval until somebody has signed in. */
async function signedIn(
  io: CommandIo,
  provider: Provider,
  at: Endpoints,
  { deviceCode, expiresInMs, intervalMs }: DeviceCode,
): Promise<Tokens> {
  const { clock, signal } = io;
  const endMs = clock.nowMs() + expiresInMs;
  let pauseMs = intervalMs;
  while (clock.nowMs() < endMs) {
    await pause(io, pauseMs);
    if (signal.aborted) throw new InterruptedError('not signed in');
    const answer = await askForTokens(provider, at, deviceCode);
    switch (answer.kind) {
      case 'tokens':
        return answer.tokens;
      case 'pending':
        break;
      case 'slowDown':
        pauseMs += slowerByMs;
        break;
      case 'refused':
        throw new SignInNeeded(`not signed in: ${answer.why}`);
    }
  }
  throw new SignInNeeded('not signed in: the code has expired before anybody signed in');
}
