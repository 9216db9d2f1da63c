import { create } from '@bufbuild/protobuf';
import { expect, test } from 'vitest';
import {
  ComparedPartSchema,
  NetworkInterfaceSchema,
  PartFactsSchema,
  PartKind,
  PartMatch,
} from './gen/rackwright/v1/inventory_pb.ts';
import { cablesOf, partKindText, partMatchText, partText, switchText } from './hardware-text.ts';

test('a part is told by what a side says of it', () => {
  const drive = { name: 'sda', serial: 'S1', sizeBytes: 960_197_124_096n, version: '2.1' };
  expect(partText(create(PartFactsSchema, drive))).toBe('sda, S1, 960.2 GB, firmware 2.1');
  const facts = (sizeBytes: bigint) => partText(create(PartFactsSchema, { sizeBytes }));
  expect([facts(16n << 30n), facts(67_108_864n), facts(0n)]).toEqual(['16 GiB', '67.1 MB', '']);
  expect(partText(undefined)).toBe('');
});

test('a comparison is one word, with the differences', () => {
  const row = { kind: PartKind.DRIVE, match: PartMatch.DIFFERS };
  const differs = create(ComparedPartSchema, { ...row, differences: ['size_bytes', 'version'] });
  expect(`${partKindText(differs)} ${partMatchText(differs)}`).toBe('drive differs: size, version');
  const texts = [PartMatch.UNSPECIFIED, PartMatch.SAME, PartMatch.ONLY_HOST, PartMatch.ONLY_BMC];
  expect(texts.map((match) => partMatchText(create(ComparedPartSchema, { match })))).toEqual([
    ...['', 'same', 'host only', 'BMC only'],
  ]);
});

test('each neighbour of an interface has a row, and silence tells how long it lasted', () => {
  const neighbors = [{ systemName: 'leaf-1', chassisId: 'c' }, { chassisId: '02:00' }];
  const cards = [{ neighbors }, { listenedSeconds: 12 }, {}];
  const interfaces = cards.map((card) => create(NetworkInterfaceSchema, card));
  expect(cablesOf(interfaces).map(switchText)).toEqual([
    ...['leaf-1', '02:00', 'not heard in 12 s', ''],
  ]);
});
