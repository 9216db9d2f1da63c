import { expect, test } from 'vitest';
import { refusalOfStatus } from './refusal.ts';

function failureOf(message: string): string {
  const body = new TextEncoder().encode(JSON.stringify({ error: { message } }));
  const answer = {
    kind: 'answered',
    status: 401,
    headers: {},
    body,
    certificateSha256: '',
  } as const;
  const target = { method: 'GET', path: '/redfish/v1/Systems', secrets: [] };
  const refusal = refusalOfStatus(answer, target, { hasSession: false, isAccepted: false });
  return refusal.kind === 'failed' ? refusal.type : refusal.reason;
}

test.each([
  'The account is locked for 60 s',
  'Account locked out after 3 failures',
  'User lockout is active',
  'LOCKED',
  'OEM.1.0.AccountLocked',
  'OEM.1.0.UserLockedOut',
])('the refusal "%s" says that the account is locked', (message) => {
  expect(failureOf(message)).toBe('lockedOut');
});

test.each([
  'Request blocked by policy',
  'REQUEST BLOCKED',
  'The chassis is interlocked',
  'Unlocked accounts alone may sign in',
  'No clock is set',
])('the refusal "%s" does not say that the account is locked', (message) => {
  expect(failureOf(message)).toBe('authentication');
});
