/** The identity's files on a disk that loses unsynced writes. */
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { ForgetfulFiles, forgetfulDisk, quietLog as log } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { type OwnIdentity, openIdentity } from './identity.ts';

const quiet = () => undefined;
const clock: Clock = {
  nowMs: () => Date.UTC(2026, 0, 1),
  suspendAwareMs: () => 0,
  after: () => quiet,
};

/** A start of the control plane on these files. */
async function start(files: ForgetfulFiles): Promise<OwnIdentity> {
  const parts = { disk: forgetfulDisk(files), clock, log, random: nodeRandom() };
  const own = await openIdentity({ ...parts, folder: '/identity', caLifetimeMs: 86_400_000 });
  if (own.isNew) await own.complete();
  return own;
}

/** What must never change. */
async function secretsOf(files: ForgetfulFiles, own: OwnIdentity) {
  const authorities = await files.readFile('/identity/ca.sealed');
  const { serverKeyPem, erasure, adminTokenSha256 } = own;
  const keys = await own.secretsKeySource.read();
  const key = keys.map((each) => Buffer.from(each).toString('hex'));
  return { serverKeyPem, erasure, adminTokenSha256, key, authorities: authorities.toString() };
}

test('an identity that is complete is the same one after a power cut', async () => {
  const files = new ForgetfulFiles();
  const before = await secretsOf(files, await start(files));
  files.cutPower();
  const own = await start(files);
  expect(own.isNew).toBe(false);
  expect(await secretsOf(files, own)).toEqual(before);
});

test('wherever the power goes at the first start, the next one ends it or has all', async () => {
  let isEverWhole = false;
  for (let calls = 0; !isEverWhole; calls += 3) {
    const files = new ForgetfulFiles();
    files.dieAfter(calls);
    const first = await start(files).catch(() => undefined);
    const shown = first === undefined ? undefined : await secretsOf(files, first);
    files.cutPower();
    const next = await start(files);
    const found = await secretsOf(files, next);
    if (shown !== undefined) {
      expect(next.isNew, `${calls} calls`).toBe(false);
      expect(found, `${calls} calls`).toEqual(shown);
    }
    files.cutPower();
    expect(await secretsOf(files, await start(files)), `${calls} calls`).toEqual(found);
    isEverWhole = shown !== undefined;
  }
});
