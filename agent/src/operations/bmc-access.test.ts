import type { BmcTransient } from '@rackwright/bmc';
import { expect, test } from 'vitest';
import { resultOfBmc } from './bmc-access.ts';

const refused = { kind: 'transient', message: 'why', backendText: 'its words' } as const;

test.each([
  ['busy', { kind: 'retryAfter', reason: 'locked', delayMs: 0 }],
  ['queueFull', { kind: 'retryAfter', reason: 'locked', delayMs: 0 }],
  ['trouble', { kind: 'transientError', cause: 'busy' }],
  ['unreachable', { kind: 'transientError', cause: 'unreachable' }],
  ['breakerOpen', { kind: 'transientError', cause: 'unreachable' }],
  ['cancelled', { kind: 'failed', type: 'cancelled' }],
] as const)('a BMC call that ends with %s becomes the result that fits', (reason, wanted) => {
  expect(resultOfBmc({ ...refused, reason })).toMatchObject(wanted);
});

test('a BMC that says when it may be asked again is not asked before', () => {
  const busy: BmcTransient = { ...refused, reason: 'busy', retryAfterMs: 40_000 };
  expect(resultOfBmc(busy)).toMatchObject({ kind: 'retryAfter', delayMs: 40_000 });
});
