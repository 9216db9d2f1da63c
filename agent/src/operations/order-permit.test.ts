import { create } from '@bufbuild/protobuf';
import type { BmcTransient } from '@rackwright/bmc';
import { BmcIdentitySchema } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { expect, test } from 'vitest';
import { AttemptEnd, type OperationContext } from '../session/index.ts';
import { permitEachOrder } from './order-permit.ts';

const free = { isLeaseValid: () => true, brake: () => undefined };
const own = { serial: 'HOST-1' };
const request = { expectedIdentity: create(BmcIdentitySchema, own) };

/** The end of the attempt, or why it waits; undefined: the order is permitted. */
function endOf(
  context: Pick<OperationContext, 'isLeaseValid' | 'brake'>,
  seen: { readonly serial: string },
  done: readonly string[] = [],
): FinalResult | BmcTransient | undefined {
  try {
    return permitEachOrder(request, context)(seen, done);
  } catch (error) {
    if (error instanceof AttemptEnd) return error.result;
    throw error;
  }
}

test('an order to the BMC of the host is permitted while the lease is valid', () => {
  expect(endOf(free, own)).toBeUndefined();
});

test.each([[[]], [['delete RAID0 of 1 drives']]])(
  'an order to another BMC is not permitted (done before: %j)',
  (done) => {
    const end = endOf(free, { serial: 'HOST-2' }, done);
    expect(end).toMatchObject({ kind: 'failed', type: 'identityMismatch' });
    expect(JSON.stringify(end)).toContain('product serial HOST-1 is expected');
    for (const one of done) expect(JSON.stringify(end)).toContain(one);
  },
);

test('an order that the lease forbids ends the attempt first, and waits after a change', () => {
  const ended = { ...free, isLeaseValid: () => false };
  const frozen = { ...ended, brake: () => ({ text: 'a fire drill' }) };
  expect(endOf(ended, own)).toMatchObject({ kind: 'retryAfter', reason: 'notReady' });
  expect(endOf(frozen, own)).toMatchObject({ kind: 'retryAfter', reason: 'frozen' });
  expect(endOf(frozen, own, ['delete it'])).toMatchObject({
    ...{ kind: 'transient', reason: 'busy', message: 'a fire drill' },
  });
});
