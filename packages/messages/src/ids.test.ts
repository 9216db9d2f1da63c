import { expectTypeOf, test } from 'vitest';
import type { HostUid, OperationId } from './ids.ts';

test('an id is none of another kind, and a text may become one', () => {
  expectTypeOf<OperationId>().not.toExtend<HostUid>();
  expectTypeOf<HostUid>().not.toExtend<OperationId>();
  expectTypeOf<string>().toExtend<HostUid>();
});
