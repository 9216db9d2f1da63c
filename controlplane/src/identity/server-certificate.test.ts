import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk } from '@rackwright/platform/testing';
import { beforeEach, expect, test } from 'vitest';
import {
  clockSkewMs,
  generatePrivateKeyPem,
  type Issuer,
  makeCaCertificate,
  openIssuer,
} from './authority.ts';
import { type IdentityFolder, openFolder, readText, writePublic } from './owner-only.ts';
import { freshServerCertificate, type ServerCertificateMaking } from './server-certificate.ts';

const startMs = Date.UTC(2026, 10, 20);
const random = nodeRandom();
const clock: Clock = {
  nowMs: () => startMs,
  suspendAwareMs: () => 0,
  after: () => () => undefined,
};
let folder: IdentityFolder;
let making: ServerCertificateMaking;

async function authority(): Promise<Issuer> {
  const keyPem = generatePrivateKeyPem();
  const certificate = await makeCaCertificate(keyPem, clock, random, 365 * 86_400_000);
  return await openIssuer(keyPem, certificate, clock, random);
}

beforeEach(async () => {
  folder = await openFolder(forgetfulDisk(new ForgetfulFiles()), '/identity');
  const names = ['b.example', 'a.example', '127.0.0.1'];
  making = { folder, issuer: await authority(), privateKeyPem: generatePrivateKeyPem(), names };
});

const shown = async (by: ServerCertificateMaking, nowMs = startMs): Promise<string> =>
  (await freshServerCertificate(by, nowMs)).tls.certificateChainPem;

test('a certificate that fits is kept, in whatever order its names come', async () => {
  const first = await shown(making);
  expect(first.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  expect(await shown({ ...making, names: making.names.toReversed() })).toBe(first);
  expect(first.startsWith((await readText(folder, 'server.pem')) ?? 'none')).toBe(true);
});

test.each<[string, () => Promise<Partial<ServerCertificateMaking>>]>([
  ['another key', async () => ({ privateKeyPem: generatePrivateKeyPem() })],
  ['another authority', async () => ({ issuer: await authority() })],
  ['one name less', async () => ({ names: ['a.example', '127.0.0.1'] })],
  ['one name more', async () => ({ names: [...making.names, 'c.example'] })],
])('%s needs another certificate', async (_, change) => {
  const first = await shown(making);
  const other = { ...making, ...(await change()) };
  const second = await shown(other);
  expect(second).not.toBe(first);
  expect(await shown(other)).toBe(second);
});

test('a certificate is not kept that is damaged or not good yet', async () => {
  const first = await shown(making);
  expect(await shown(making, startMs - clockSkewMs)).toBe(first);
  expect(await shown(making, startMs - clockSkewMs - 1_000)).not.toBe(first);
  await writePublic(folder, 'server.pem', 'no certificate');
  const made = await shown(making);
  expect(await shown(making)).toBe(made);
  expect(made).toContain('BEGIN CERTIFICATE');
});
