/** How the case of a disk is judged by its file and by what is claimed of it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { fillDisk, labDisk } from '../../qemu-disks.ts';
import type { LiarDisk } from './cases.ts';
import { type Claims, isGood, judgeDisk } from './judge.ts';

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-judge-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const keeps: LiarDisk = {
  ...{ name: 'liar', bus: 'virtio', mebibytes: 1, isServed: true },
  ...{ says: 'ignores all writes', lie: { kind: 'keepsAll' } },
};

function judge(spec: LiarDisk, lies: number, more: Partial<Claims>) {
  const disk = { ...spec, ...labDisk(spec, folder, '01') };
  fillDisk(disk);
  const claims = { isAvailable: false, statements: [], text: '', ...more };
  const judged = judgeDisk(disk, lies, claims);
  return { ...judged, isGood: isGood(judged.ending) };
}

test('a caught disk is reported with the message of the failure', () => {
  const text = 'hosts/h1: manageable\n  because disk LAB01LIAR keeps its data';
  const judged = judge(keeps, 3, { text });
  expect(judged).toMatchObject({ ending: 'refused', isGood: true, tried: 'lied 3 times' });
  expect(judged.caughtBy).toBe('because disk LAB01LIAR keeps its data');
});

test('a lie that no request met counts as not tried, even if the disk is named', () => {
  const judged = judge(keeps, 0, { text: 'disk LAB01LIAR keeps its data' });
  expect(judged).toMatchObject({ ending: 'notTried', isGood: false });
});

test.each([
  ['gotThrough', { isAvailable: true }],
  ['notNamed', { text: 'disk OTHER keeps its data' }],
] as const)('data that is left on the disk ends as %s', (ending, claims) => {
  expect(judge(keeps, 1, claims)).toMatchObject({ ending, isGood: false });
});

test('an honest disk that is erased beside others is good without a lie', () => {
  const honest: LiarDisk = { name: 'honest', bus: 'virtio', mebibytes: 1, says: 'honest' };
  expect(judge({ ...honest, isBlank: true }, 0, {})).toMatchObject({
    ending: 'erasedBesideOthers',
    isGood: true,
  });
});
