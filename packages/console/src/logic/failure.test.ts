/** Every failure says what happened, why, and what to do; by its facts, not its text. */
import { Code } from '@connectrpc/connect';
import { hostRefusalNames, hostRefusalWord } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type Failure, failureTextOf, isPassing, isSignedOut } from './failure.ts';

const failure = (overrides: Partial<Failure>): Failure => ({
  code: Code.FailedPrecondition,
  message: 'hosts/h1 is busy',
  reason: '',
  metadata: {},
  violations: [],
  retryAfterMs: undefined,
  isUnreached: false,
  ...overrides,
});
const codes = Object.values(Code).filter((each): each is Code => typeof each === 'number');

test.each(codes)('code %i has advice, whatever else comes with it', (code) => {
  const told = failureTextOf('The clean was not started', failure({ code }));
  expect(told).toMatchObject({ subject: 'The clean was not started.', why: 'hosts/h1 is busy.' });
  expect(told.advice).toMatch(/^[A-Z].{8,}\.$/);
});

test('each refusal of a host has advice of its own', () => {
  const advice = hostRefusalNames.map((name) => {
    const metadata = { refusal: hostRefusalWord(name) };
    return failureTextOf('x', failure({ reason: 'HOST_REFUSED', metadata })).advice;
  });
  const usual = failureTextOf('x', failure({})).advice;
  expect(new Set(advice).size).toBe(hostRefusalNames.length);
  expect(advice).not.toContain(usual);
});

test('the reason decides before the code, and neither the words of the message', () => {
  const wrong = failure({ code: Code.Unauthenticated, reason: 'TOKEN_WRONG' });
  expect(failureTextOf('x', wrong).advice).toContain('three parts');
  const other = failure({ reason: 'ANOTHER', message: 'TOKEN_WRONG HOST_REFUSED' });
  expect(failureTextOf('x', other).advice).toBe(failureTextOf('x', failure({})).advice);
});

test('a control plane that cannot be reached is said so, not in a browser’s words', () => {
  const away = failure({ code: Code.Unknown, message: 'Failed to fetch', isUnreached: true });
  expect(failureTextOf('x', away).why).toBe('The control plane does not answer.');
  expect(isPassing(away)).toBe(true);
  expect(isPassing(failure({}))).toBe(false);
  expect(isSignedOut(failure({ code: Code.Unauthenticated }))).toBe(true);
});

test('a failure without words has some', () => {
  expect(failureTextOf('x', failure({ message: ' ' })).why).toBe('The server gave no reason.');
});
