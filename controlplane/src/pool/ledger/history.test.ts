import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { asRunNumber, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { historyLimitDefault, historyOf } from './history.ts';

function deployment(digest: string, host: string, minute: number, version = '', reference = '') {
  return create(wire.DeploymentRecordSchema, {
    ...{ digest, hostUid: host, host: `hosts/${host}`, version, reference },
    run: asRunNumber(minute),
    endTime: timestampFromMs(minute * 60_000),
  });
}

const digestsOf = (entries: ReturnType<typeof historyOf>) => entries.map(({ digest }) => digest);

test('garm-H5: the cap cuts the view, but neither what hosts run now nor the target', () => {
  const ledger = ['a', 'b', 'c', 'd', 'e'].map((digest, index) => deployment(digest, 'h', index));
  const none = { limit: 2, target: '' };
  expect(digestsOf(historyOf(ledger, [], none))).toEqual(['e', 'd']);
  expect(digestsOf(historyOf(ledger, [{ digest: 'a' }], none))).toEqual(['e', 'd', 'a']);
  expect(digestsOf(historyOf(ledger, [], { limit: 2, target: 'b' }))).toEqual(['e', 'd', 'b']);
});

test('three of five deployed digests are shown by default', () => {
  const ledger = ['a', 'b', 'c', 'd', 'e'].map((digest, index) => deployment(digest, 'h', index));
  const view = { limit: historyLimitDefault, target: '' };
  expect(digestsOf(historyOf(ledger, [], view))).toEqual(['e', 'd', 'c']);
});

test('garm-H7: two digests of one version are two entries, one under two tags is one', () => {
  const ledger = [
    deployment('a', 'h1', 1, '1.0', 'os:stable'),
    deployment('b', 'h2', 2, '1.0', 'os:stable'),
    deployment('a', 'h3', 3, '', 'os:other'),
  ];
  const entries = historyOf(ledger, [], { limit: 3, target: '' });
  expect(entries.map(({ digest, version, hostCount }) => [digest, version, hostCount])).toEqual([
    ['a', '1.0', 2],
    ['b', '1.0', 1],
  ]);
});

test('garm-H9: entries that come out of order make the same history', () => {
  const ledger = [deployment('a', 'h1', 5), deployment('b', 'h1', 3), deployment('a', 'h2', 1)];
  const view = { limit: 3, target: '' };
  const forwards = historyOf(ledger, [], view);
  expect(historyOf(ledger.toReversed(), [], view)).toEqual(forwards);
  expect(digestsOf(forwards)).toEqual(['a', 'b']);
  expect(forwards[0]?.lastDeployed).toEqual(timestampFromMs(5 * 60_000));
});
