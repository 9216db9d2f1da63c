/** The folder's copy of the authorities. */
import { toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { createSecrets, secretsKeyBytes } from '../secrets/index.ts';
import {
  makeFirstAuthority,
  newAuthorities,
  readCopy,
  writeAuthorities,
} from './authority-files.ts';
import { type AuthorityMaking, certificatesOf } from './authority-record.ts';
import { type IdentityFolder, openFolder, readText, writePrivate } from './owner-only.ts';

const random = nodeRandom();
const clock: Clock = {
  nowMs: () => Date.UTC(2026, 10, 20),
  suspendAwareMs: () => 0,
  after: () => () => undefined,
};
const making: AuthorityMaking = {
  clock,
  random,
  caLifetimeMs: 86_400_000,
  sealer: createSecrets([random.bytes(secretsKeyBytes)], random),
};
let folder: IdentityFolder;

beforeEach(async () => {
  folder = await openFolder(forgetfulDisk(new ForgetfulFiles()), '/identity');
});

test('the copy is read as it was written, with the certificates beside it', async () => {
  expect(await readCopy(folder)).toBeUndefined();
  const record = await newAuthorities(making);
  await writeAuthorities(folder, record);
  const copy = await readCopy(folder);
  expect(copy && toBinary(wire.TrustRecordSchema, copy)).toEqual(
    toBinary(wire.TrustRecordSchema, record),
  );
  expect(copy?.generation).toBe(1n);
  expect(await readText(folder, 'ca.pem')).toBe(certificatesOf(record).join(''));
});

test.each(['', 'bm90IGEgcmVjb3Jk', '!!!'])('a damaged copy (%s) is not used', async (text) => {
  await writePrivate(folder, 'ca.sealed', `${text}\n`);
  await expect(readCopy(folder)).rejects.toThrow('/identity/ca.sealed is damaged');
});

test('files that hold the same already are not written again', async () => {
  const record = await newAuthorities(making);
  await writeAuthorities(folder, record);
  const writes: string[] = [];
  const disk = {
    ...folder.disk,
    writeAtomic: async (path: string) => void writes.push(path),
  };
  await writeAuthorities({ ...folder, disk }, record);
  expect(writes).toEqual([]);
  const other = await newAuthorities(making);
  await writeAuthorities({ ...folder, disk }, other);
  expect(writes).toEqual(['/identity/ca.sealed', '/identity/ca.pem']);
});

test('a first authority is made once', async () => {
  await makeFirstAuthority(folder, making);
  const first = await readCopy(folder);
  await makeFirstAuthority(folder, making);
  expect(await readCopy(folder)).toEqual(first);
});
