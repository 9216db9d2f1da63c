/** A test that no timeout reaches. */
import { test } from 'vitest';

test('is busy for ever', () => {
  for (;;);
});
