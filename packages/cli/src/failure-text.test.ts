import { expect, test } from 'vitest';
import { UsageError } from './failure.ts';
import { describeFailure } from './failure-text.ts';

test('a message of a command stands alone; any other error is shown with its causes', () => {
  const cause = new Error('3 INVALID_ARGUMENT');
  const own = new UsageError('a.yaml has 2 problems');
  own.cause = cause;
  expect(describeFailure(own)).toBe('rackwright: a.yaml has 2 problems');
  const other = new Error('cannot read a.yaml', { cause });
  expect(describeFailure(other)).toBe('rackwright: cannot read a.yaml: 3 INVALID_ARGUMENT');
});
