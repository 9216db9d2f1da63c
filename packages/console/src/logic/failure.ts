/**
 * The text for a person about a call that failed: what happened, why, and what to do. Pure.
 *
 * Invariants:
 * 1. Advice follows from code, reason and refusal, never from the text of a message.
 * 2. There is advice for every answer of a server.
 */
import { Code } from '@connectrpc/connect';

/** Google's ErrorInfo, BadRequest and RetryInfo of a failure, as far as it has them. */
export interface Failure {
  readonly code: Code;
  /** The server's sentence. */
  readonly message: string;
  /** UPPER_SNAKE_CASE; empty: there is none. */
  readonly reason: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly violations: readonly { readonly field: string; readonly description: string }[];
  readonly retryAfterMs: number | undefined;
  /** There was no answer at all: the network, or a control plane that is away. */
  readonly isUnreached: boolean;
}

export interface FailureText {
  readonly subject: string;
  readonly why: string;
  readonly advice: string;
}

/** By the refusal in the metadata of HOST_REFUSED. */
const refusalAdvice: Readonly<Record<string, string>> = {
  BUSY: 'Wait until the run has ended, or abort it on the host’s page.',
  STATE: 'Look at the host’s page: it says which work its state allows, and what leads there.',
  CLAIMED: 'Ask whoever has claimed the host to give it up.',
  HELD: 'Lift the hold on the host’s page, once its reason is seen to.',
  DELETING: 'Take the deletion back first, or let it end.',
  RESTORED: 'Look at the host, and lift the hold that the restored store has put on it.',
  NOT_READY: 'Give the host the credential and the addresses that it lacks.',
  FENCED: 'See to the machine that was removed by force, then lift its fence.',
  NOTHING_TO_DO: 'Nothing needs to be done: the host is so already.',
  NOT_CERTIFIED: 'Choose steps that erase, or leave the list to the automatic plan.',
  PLAN_CHANGED: 'Look at a new plan: the host is not as it was when this one was made.',
  CHANGED_HANDS: 'Look at who uses the host now, and ask them.',
  AGENT_TOO_OLD: 'Upgrade the agent of its rack.',
  OLD_DATA: 'Say why the old disk may boot, by the command `rackwright host power`.',
  NEWER_RECORD: 'Upgrade this control plane: a newer one has written the host’s record.',
  LIMIT: 'Remove some of those that there are.',
  NOT_ALLOWED: 'Ask an administrator to allow the step for the fleet.',
  WORKFLOW_DISABLED: 'Enable the workflow first.',
  WORKFLOW_PENDING: 'Wait for the run that is pending, or cancel it.',
  NOT_NOW: 'Wait, and try again once the host takes workflows.',
};

/** By the reason of ErrorInfo, where it is more specific than the code. */
const reasonAdvice: Readonly<Record<string, string>> = {
  ETAG_MISMATCH: 'Somebody else was first. Load the page again, and decide again.',
  PLAN_GONE: 'Make a new plan.',
  PLAN_EXPIRED: 'Make a new plan: plans are kept for a day.',
  ROLE_TOO_SMALL: 'Ask somebody with the role that is named, or sign in as one.',
  SCOPE_TOO_SMALL: 'Ask somebody whose scope reaches that far.',
  OUT_OF_SCOPE: 'Ask somebody in whose scope it is.',
  NOT_FOUND_IN_SCOPE: 'It may be outside of your scope. Check the name.',
  TOKEN_EXPIRED: 'Sign in with a token that is valid still.',
  TOKEN_REVOKED: 'Sign in with another token: this one was revoked.',
  TOKEN_WRONG: 'Check the token: one begins with “rwo1.” and has three parts.',
  TOO_MANY_WATCHES: 'Close other pages of the console, or wait a little.',
  VIEW_BEHIND: 'Try again in a moment: the list catches up with the store.',
  PROVIDER_NO_ROLE: 'Ask whoever runs the identity provider for a group that oidc.roles names.',
  PROVIDER_TOKEN_WITHOUT_NAME:
    'Let whoever runs the control plane name another claim in oidc.usernameClaim.',
  PROVIDER_TOKEN_NOT_YET: 'Compare the clocks of both, or raise oidc.clockSkewSeconds.',
  PROVIDER_TOKEN_WRONG_AUDIENCE:
    'Let whoever runs the control plane compare oidc.browser.clientId with the provider’s.',
  PROVIDER_HOST_WRONG: 'Open the console by the name that the provider knows it by.',
  PROVIDER_ISSUER_WITHOUT_BROWSER: 'Sign in with a token.',
  PROVIDER_NOT_FOUND: 'Sign in with a token.',
  PROVIDER_ISSUER_UNAVAILABLE: 'Sign in again in a moment, or with a token.',
  PROVIDER_SIGN_IN_BUSY: 'Sign in again in a moment.',
  PROVIDER_SECRETS_UNAVAILABLE: 'Sign in with a token, and look at the control plane’s log.',
  PROVIDER_STORE_UNAVAILABLE: 'Sign in again in a moment.',
  NOTHING_TO_APPROVE: 'Nothing waits for an approval now. Load the page again.',
  POSITION_COMPACTED: 'Load the page again: it was away for too long.',
  OUTCOME_UNKNOWN: 'Look whether it was done before you ask again.',
};

const codeAdvice: Readonly<Record<Code, string>> = {
  [Code.Canceled]: 'Try again.',
  [Code.Unknown]: 'Try again. If it stays so, look at the control plane’s log.',
  [Code.InvalidArgument]: 'Correct what is named, and try again.',
  [Code.DeadlineExceeded]: 'Look whether it was done, then try again.',
  [Code.NotFound]: 'Check the name. It may have been removed.',
  [Code.AlreadyExists]: 'Choose another name or value, or use what is there.',
  [Code.PermissionDenied]: 'Ask somebody with more rights, or sign in as one.',
  [Code.ResourceExhausted]: 'Wait a little, and try again.',
  [Code.FailedPrecondition]: 'Change what stands against it, and try again.',
  [Code.Aborted]: 'Load the page again, and decide again.',
  [Code.OutOfRange]: 'Begin again from the first page.',
  [Code.Unimplemented]: 'Upgrade the control plane: it does not know this yet.',
  [Code.Internal]: 'Give the reference to whoever reads the control plane’s log.',
  [Code.Unavailable]: 'Wait: the page tries again by itself.',
  [Code.DataLoss]: 'Give the message to whoever runs the control plane.',
  [Code.Unauthenticated]: 'Sign in again.',
};

/** The text about `failure` of an attempt, such as "The clean of h1 was not planned". */
export function failureTextOf(subject: string, failure: Failure): FailureText {
  const { message, isUnreached } = failure;
  const why = isUnreached ? 'The control plane does not answer.' : sentence(message);
  return { subject: sentence(subject), why, advice: adviceOf(failure) };
}

/** True when the caller has to sign in. */
export function isSignedOut({ code }: Failure): boolean {
  return code === Code.Unauthenticated;
}

/** True when it may be well by itself: then data stays on the screen, and is called stale. */
export function isPassing({ code, isUnreached }: Failure): boolean {
  return isUnreached || code === Code.Unavailable || code === Code.DeadlineExceeded;
}

function adviceOf({ code, reason, metadata, isUnreached }: Failure): string {
  if (isUnreached) return 'Wait: the page tries again by itself. Check the network if it stays so.';
  const refusal = reason === 'HOST_REFUSED' ? refusalAdvice[metadata['refusal'] ?? ''] : undefined;
  return refusal ?? reasonAdvice[reason] ?? codeAdvice[code];
}

function sentence(text: string): string {
  const trimmed = text.trim();
  if (trimmed === '') return 'The server gave no reason.';
  return /[.!?]$/.test(trimmed) ? trimmed : `${trimmed}.`;
}
