/** The folder's copy of the authorities, and the key files of an older release. */
import { toBinary } from '@bufbuild/protobuf';
import { store as wire } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import { createSecrets, secretsKeyBytes } from '../secrets/index.ts';
import { generatePrivateKeyPem, makeCaCertificate } from './authority.ts';
import {
  makeFirstAuthority,
  newAuthorities,
  readCopy,
  readOldAuthority,
  removeOldKey,
  writeAuthorities,
} from './authority-files.ts';
import { type AuthorityMaking, certificatesOf } from './authority-record.ts';
import {
  type IdentityFolder,
  openFolder,
  readPrivate,
  readText,
  writePrivate,
  writePublic,
} from './owner-only.ts';

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

async function oldRelease(): Promise<{ keyPem: string; certificatePem: string }> {
  const keyPem = generatePrivateKeyPem();
  const certificate = await makeCaCertificate(keyPem, clock, random, 86_400_000);
  return { keyPem, certificatePem: `${certificate.toString('pem')}\n` };
}

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

test('a first authority is made once, and none beside the key of an older release', async () => {
  await makeFirstAuthority(folder, making);
  const first = await readCopy(folder);
  await makeFirstAuthority(folder, making);
  expect(await readCopy(folder)).toEqual(first);
  await folder.disk.remove('/identity/ca.sealed');
  await writePrivate(folder, 'ca.key', (await oldRelease()).keyPem);
  await makeFirstAuthority(folder, making);
  expect(await readCopy(folder)).toBeUndefined();
});

test('the key of an older release counts only with its own certificate', async () => {
  expect(await readOldAuthority(folder, making)).toBeUndefined();
  const old = await oldRelease();
  await writePrivate(folder, 'ca.key', old.keyPem);
  await expect(readOldAuthority(folder, making)).rejects.toThrow('ca.pem is missing beside ca.key');
  await writePublic(folder, 'ca.pem', (await oldRelease()).certificatePem);
  await expect(readOldAuthority(folder, making)).rejects.toThrow('do not belong together');
  await writePublic(folder, 'ca.pem', old.certificatePem);
  const record = await readOldAuthority(folder, making);
  expect(record && certificatesOf(record)).toEqual([old.certificatePem]);
});

test('that key is removed only when the record has its authority', async () => {
  const old = await oldRelease();
  const record = await newAuthorities(making);
  expect(await removeOldKey(folder, record)).toBe(false);
  await writePrivate(folder, 'ca.key', old.keyPem);
  await expect(removeOldKey(folder, record)).rejects.toThrow('(SHA-256 unknown)');
  await writePublic(folder, 'ca.pem', old.certificatePem);
  await expect(removeOldKey(folder, record)).rejects.toThrow('belongs to another control plane');
  expect(await readPrivate(folder, 'ca.key')).toBe(old.keyPem);
  const own = await readOldAuthority(folder, making);
  expect(own && (await removeOldKey(folder, own))).toBe(true);
  expect(await readPrivate(folder, 'ca.key')).toBeUndefined();
});
