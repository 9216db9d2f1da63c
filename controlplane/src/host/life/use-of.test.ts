/** A request from one use of a host does not affect the next one. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { HostState, type HostStatusSchema, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { isInUseOf, useOf } from './use-of.ts';

const claim = { by: 'pools/p', reason: 'a host of the pool', at: timestampFromMs(1_000) };
const provisioned = { state: HostState.PROVISIONED, claim, useEpoch: 4n };

function recordWith(
  status: MessageInitShape<typeof HostStatusSchema> = provisioned,
  deployedRun = 7n,
): store.HostRecord {
  return create(store.HostRecordSchema, { host: { name: 'hosts/h1', status }, deployedRun });
}

test.each<[string, store.HostRecord]>([
  ['another claims it', recordWith({ ...provisioned, claim: { ...claim, by: 'user:ann' } })],
  [
    'it was claimed anew',
    recordWith({ ...provisioned, claim: { ...claim, at: timestampFromMs(2) } }),
  ],
  ['nobody claims it', recordWith({ state: HostState.PROVISIONED, useEpoch: 4n })],
  ['something else was deployed', recordWith(provisioned, 8n)],
  ['it was used by somebody', recordWith({ ...provisioned, useEpoch: 5n })],
  ['it is not in use', recordWith({ ...provisioned, state: HostState.AVAILABLE })],
  ['it is gone', create(store.HostRecordSchema)],
])('a host is in another use when %s', (_, now) => {
  const noted = useOf(recordWith());
  expect(isInUseOf(recordWith(), noted)).toBe(true);
  expect(isInUseOf(now, noted)).toBe(false);
});

test('the reason of a claim and where the host stands on its way change no use', () => {
  const noted = useOf(recordWith());
  const reason = { ...provisioned, claim: { ...claim, reason: 'another' } };
  expect(isInUseOf(recordWith(reason), noted)).toBe(true);
  const [manageable, available] = [HostState.MANAGEABLE, HostState.AVAILABLE].map((state) =>
    recordWith({ ...provisioned, state }),
  ) as [store.HostRecord, store.HostRecord];
  expect(isInUseOf(manageable, useOf(available))).toBe(true);
});

test('hosts with an image and hosts of somebody else are in use; a use not noted is none', () => {
  for (const [state, inUse] of [
    [HostState.PROVISIONED, true],
    [HostState.EXTERNAL, true],
    [HostState.AVAILABLE, false],
    [HostState.NEW, false],
  ] as const) {
    expect(useOf(recordWith({ ...provisioned, state })).inUse).toBe(inUse);
  }
  expect(isInUseOf(recordWith(), undefined)).toBe(false);
});
