/** An answer from memory equals the file's content, or there is none. */

import { expect, test } from 'vitest';
import { asWriteId } from '../contract.ts';
import type { StoredChange } from '../write.ts';
import { RECENT_CHANGES_MAX, RecentChanges } from './recent.ts';

function change(revision: number, key: string, bytes = 1): StoredChange {
  const value = new Uint8Array(bytes);
  return { kind: 'put', key, revision, writeId: asWriteId(`w${revision}`), previous: 0, value };
}

const revisions = (found: readonly StoredChange[] | undefined) =>
  found?.map(({ revision }) => revision);

test('the changes after a revision are listed by prefix, up to a limit', () => {
  const recent = new RecentChanges();
  expect(recent.after(0, '', 10)).toBeUndefined();
  for (const [at, key] of ['hosts.a', 'racks.a', 'hosts.b', 'hosts.c'].entries()) {
    recent.add(change(7 + at, key));
  }
  expect(revisions(recent.after(6, 'hosts', 10))).toEqual([7, 9, 10]);
  expect(revisions(recent.after(7, 'hosts', 1))).toEqual([9]);
  expect(revisions(recent.after(6, '', 10))).toEqual([7, 8, 9, 10]);
  expect(revisions(recent.after(10, '', 10))).toEqual([]);
});

test('changes that only the file may know are not listed', () => {
  const recent = new RecentChanges();
  recent.add(change(7, 'hosts.a'));
  expect(recent.after(5, '', 10)).toBeUndefined();
  for (let at = 8; at < 8 + 2 * RECENT_CHANGES_MAX; at += 1) recent.add(change(at, 'hosts.a'));
  const last = 7 + 2 * RECENT_CHANGES_MAX;
  expect(recent.after(last - RECENT_CHANGES_MAX - 1, '', 1)).toBeUndefined();
  const oldest = last - RECENT_CHANGES_MAX;
  expect(revisions(recent.after(oldest, '', 1))).toEqual([oldest + 1]);
  expect(revisions(recent.after(last - 2, '', 9))).toEqual([last - 1, last]);
});

test('memory is bounded by bytes as well, and the newest of a key outlives its change', () => {
  const recent = new RecentChanges();
  const [mebibyte, count] = [1_024 * 1_024, 40];
  for (let at = 1; at <= count; at += 1) recent.add(change(at, `hosts.h${at}`, mebibyte));
  expect(recent.after(0, '', 1)).toBeUndefined();
  expect(recent.after(count - 20, '', 1)).toBeUndefined();
  expect(revisions(recent.after(count - 10, '', 1))).toEqual([count - 9]);
  expect(recent.newest('hosts.h1')).toBeUndefined();
  expect(recent.newest(`hosts.h${count - 20}`)?.revision).toBe(count - 20);
});

test('keys that are read often outlive keys that are not read', () => {
  const recent = new RecentChanges();
  const value = new Uint8Array(4 * 1_024 * 1_024);
  for (let at = 1; at <= 40; at += 1) {
    recent.add({ ...change(at, `hosts.h${at}`), kind: 'put', value });
    recent.newest('hosts.h1');
  }
  expect(recent.newest('hosts.h1')?.revision).toBe(1);
  expect(recent.newest('hosts.h2')).toBeUndefined();
  // A write counts as a read.
  for (let at = 41; at <= 80; at += 1) {
    recent.add({ ...change(at, `hosts.h${at % 2 === 0 ? 1 : at}`), kind: 'put', value });
  }
  expect(recent.newest('hosts.h1')?.revision).toBe(80);
});

test('the cache is empty after a transaction was rolled back', () => {
  const recent = new RecentChanges();
  recent.add(change(1, 'hosts.a'));
  recent.forget();
  expect(recent.newest('hosts.a')).toBeUndefined();
  expect(recent.after(0, '', 1)).toBeUndefined();
});
