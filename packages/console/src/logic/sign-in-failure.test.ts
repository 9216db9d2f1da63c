/** A sign-in that was refused on the way back says why, and what to do. */
import { expect, test } from 'vitest';
import { failureTextOf } from './failure.ts';
import { signInFailure, signInReasons } from './sign-in-failure.ts';

const told = (reason: string) => failureTextOf('You are not signed in', signInFailure(reason));

test('each reason has a cause and advice of its own kind', () => {
  const causes = signInReasons.map((reason) => told(reason).why);
  expect(new Set(causes).size).toBe(signInReasons.length);
  for (const reason of signInReasons) {
    // Nothing on this page tries again by itself.
    expect(told(reason).advice).toMatch(/^[A-Z](?!.*by itself).{8,}\.$/);
  }
  expect(told('NO_ROLE')).toEqual({
    subject: 'You are not signed in.',
    why: 'The identity provider let you in, but none of your groups has a role here.',
    advice: 'Ask whoever runs the identity provider for a group that oidc.roles names.',
  });
  expect(told('ISSUER_UNAVAILABLE').advice).toContain('token');
});

test('an address puts no words of its own into the page', () => {
  for (const reason of ['Call 555 now', 'toString', '__proto__', '']) {
    const { why, advice } = told(reason);
    expect(`${why} ${advice}`).not.toMatch(/555|toString|proto/);
    expect(why).toBe('The sign-in at the identity provider did not work.');
  }
});
