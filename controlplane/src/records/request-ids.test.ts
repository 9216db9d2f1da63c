/** Ids of requests in a record: of 35, the newest 32. */
import { describe, expect, test } from 'vitest';
import { appliedId, hasApplied, withApplied } from './request-ids.ts';

const many = Array.from({ length: 35 }, (_, index) => `m:${index}`);

describe('a request id', () => {
  test('counts for its method only, and not at all when it is empty', () => {
    expect(appliedId('freeze', 'r1')).toBe('freeze:r1');
    expect(appliedId('freeze', '')).toBeUndefined();
  });

  test('was applied when the record says so; none never was', () => {
    const record = { requestIds: ['freeze:r1', ''] };
    expect(hasApplied(record, appliedId('freeze', 'r1'))).toBe(true);
    expect(hasApplied(record, appliedId('thaw', 'r1'))).toBe(false);
    expect(hasApplied(record, undefined)).toBe(false);
    expect(hasApplied(record, '')).toBe(false);
    expect(hasApplied(undefined, 'freeze:r1')).toBe(false);
  });
});

describe('the ids of a record', () => {
  const take = (ids: readonly string[], stays?: (id: string) => boolean) =>
    ids.reduce<string[]>((kept, id) => withApplied(kept, id, stays), []);

  test('are the newest ones, in their order', () => {
    expect(take(many)).toEqual(many.slice(3));
  });

  test('stay as they are when there is no id', () => {
    expect(withApplied(['a'], undefined)).toEqual(['a']);
    expect(withApplied(['a'], '')).toEqual(['a']);
  });

  test('keep the one that stays beside the newest', () => {
    const isCreation = (id: string) => id.startsWith('create:');
    const kept = take(['m:0', 'create:r', ...many], isCreation);
    expect(kept).toEqual(['create:r', ...many.slice(3)]);
    expect(take([...kept, 'create:other'], isCreation)).toEqual(['create:other', ...many.slice(3)]);
  });
});
