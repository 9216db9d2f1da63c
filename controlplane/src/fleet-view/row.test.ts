/** A row is made once for a shared record, and each time for any other. */

import { create, toBinary } from '@bufbuild/protobuf';
import { HostState, store as wire } from '@rackwright/messages';
import { asWriteId } from '@rackwright/store';
import { expect, test } from 'vitest';
import { rowOf } from './row.ts';

const record = create(wire.HostRecordSchema, {
  host: { name: 'hosts/h1', status: { state: HostState.AVAILABLE } },
});
const value = toBinary(wire.HostRecordSchema, record);
const entryAt = (key: string, revision: number) => ({
  key,
  revision,
  value,
  writeId: asWriteId('w'),
});

test('a caller that asks again gets the same row', () => {
  const row = rowOf(entryAt('hosts.h1', 3), () => record);
  expect(row).toMatchObject({ kind: 'host', hostId: 'h1', revision: 3 });
  expect(rowOf(entryAt('hosts.h1', 3), () => record)).toBe(row);
});

test.each([
  ['hosts.h1', 4],
  ['hosts.h2', 3],
])('the row of %s at revision %s is its own', (key, revision) => {
  rowOf(entryAt('hosts.h1', 3), () => record);
  const row = rowOf(entryAt(key, revision), () => record);
  expect(row).toMatchObject({ hostId: key.slice('hosts.'.length), revision });
});

test('a record that is decoded again has a new row with the same content', () => {
  const entry = entryAt('hosts.h1', 3);
  expect(rowOf(entry)).not.toBe(rowOf(entry));
  expect(rowOf(entry)).toEqual(rowOf(entry, () => record));
});
