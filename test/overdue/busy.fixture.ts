/** A test that no timeout reaches. */
import { test } from 'vitest';

test('a test is busy for ever', () => {
  for (;;);
});
