import { verify } from 'node:crypto';
import { type OperationId, readP256PublicKey, type runner, sha256Hex } from '@rackwright/messages';
import type { BootGrantState } from '../session/index.ts';

/**
 * Decides about a runner's Hello; pure.
 *
 * 1. The signature over our nonce proves the key; nothing else is read before.
 * 2. The first key that presents the token owns the boot: with it a runner may come back at any
 *    time, across restarts of ours; every other key is refused.
 * 3. A runner is accepted only when its kernel started after this grant was opened, that is after
 *    we found the host off: a machine that has been running since before is not the one that we
 *    powered on. A step of the wall clock must not look like that. So within one life of the agent
 *    a clock that only grows is compared, and across a restart the wall clock with a tolerance.
 */
export type HelloDecision =
  | { readonly kind: 'bind'; readonly grant: BootGrantState }
  /** `isProved`: its key signed the Hello, over our nonce. */
  | { readonly kind: 'refuse'; readonly message: string; readonly isProved: boolean }
  /** Somebody else has the boot already: another machine, or this one after a reboot. */
  | { readonly kind: 'otherKey'; readonly grant: BootGrantState; readonly message: string };

const label = new TextEncoder().encode('rackwright-runner-hello\0');

export interface HelloCircumstances {
  readonly nonce: Uint8Array;
  readonly grant: BootGrantState | undefined;
  /** Wall time of the Hello's arrival. */
  readonly receivedAtMs: number;
  /** The same moment on the clock that only grows. */
  readonly receivedSuspendAwareMs: number;
}

/** The step of the wall clock that is tolerated since an earlier start of the agent. */
export const wallClockToleranceMs = 60_000;

/** Longest texts of a Hello that are taken; longer ones are refused. */
const textCharactersMax = 256;
const stepsMax = 64;

export function judgeHello(hello: runner.Hello, at: HelloCircumstances): HelloDecision {
  if (!isSigned(hello, at.nonce))
    return refuse('the signature does not prove the key', { isProved: false });
  if (isOversize(hello)) return refuse('a text is too long or there are too many steps');
  const { grant } = at;
  if (grant === undefined) return refuse('the boot token is not known: boot the host again');
  if (grant.publicKey !== undefined) {
    if (bytesEqual(grant.publicKey, hello.publicKey)) return { kind: 'bind', grant };
    const message = 'another runner has used this boot token: boot the host again';
    return { kind: 'otherKey', grant, message };
  }
  if (at.receivedAtMs > grant.expiresAtMs) {
    return refuse('the boot token has expired: boot the host again');
  }
  const earlyMs = Math.round(Number(hello.uptimeMs) - sinceOpenedMs(grant, at));
  if (earlyMs > 0) {
    return refuse(`the kernel started ${earlyMs} ms before the host was powered on`);
  }
  return { kind: 'bind', grant };
}

/** How long the grant has been open, at most. */
function sinceOpenedMs(grant: BootGrantState, at: HelloCircumstances): number {
  return grant.openedSuspendAwareMs === undefined
    ? at.receivedAtMs - grant.openedAtMs + wallClockToleranceMs
    : at.receivedSuspendAwareMs - grant.openedSuspendAwareMs;
}

/** Names one boot of one ramdisk: the same across reconnects and restarts of ours. */
export function runnerSessionId(bootOperationId: OperationId, publicKey: Uint8Array): string {
  const digits = 32;
  return sha256Hex(`${bootOperationId}\0${Buffer.from(publicKey).toString('hex')}`).slice(
    0,
    digits,
  );
}

function isSigned(hello: runner.Hello, nonce: Uint8Array): boolean {
  const key = readP256PublicKey(hello.publicKey);
  if (key === undefined) return false;
  const token = new TextEncoder().encode(hello.bootToken);
  const signed = new Uint8Array([...label, ...nonce, ...token]);
  return verify('sha256', signed, key, hello.signature);
}

function isOversize(hello: runner.Hello): boolean {
  const { bootId, runnerVersion, bmcAddress, steps } = hello;
  const texts = [bootId, runnerVersion, bmcAddress, ...steps.map(({ name }) => name)];
  return steps.length > stepsMax || texts.some(({ length }) => length > textCharactersMax);
}

function refuse(
  message: string,
  { isProved = true }: { readonly isProved?: boolean } = {},
): HelloDecision {
  return { kind: 'refuse', message, isProved };
}

function bytesEqual(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, index) => byte === right[index]);
}
