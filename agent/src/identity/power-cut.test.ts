/** The agent's identity on a disk that forgets unsynced writes. */
import { ForgetfulFiles, forgetfulDisk } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { type AgentIdentity, type AgentKeyPair, IdentityFiles } from './identity.ts';

const folder = '/state';
const open = (files: ForgetfulFiles) => new IdentityFiles(forgetfulDisk(files), folder);
/** More than any of these writes takes. */
const callsMax = 24;

function identityOf({ privateKeyPem }: AgentKeyPair): AgentIdentity {
  return {
    ...{ privateKeyPem, certificatePem: 'certificate', caCertificatePem: 'ca' },
    ...{ rack: 'racks/r1', enrolmentAddress: 'cp:1', agentEndpoint: 'cp:2' },
    ...{ issuedAtMs: 1, expiresAtMs: 2 },
  };
}

test('a key that was shown is the key after a power cut, whenever that comes', async () => {
  for (let calls = 0; calls < callsMax; calls += 1) {
    const files = new ForgetfulFiles();
    files.dieAfter(calls);
    const shown = await open(files)
      .key()
      .catch(() => undefined);
    files.cutPower();
    const { privateKeyPem } = await open(files).key();
    if (shown !== undefined) expect(privateKeyPem, `${calls} calls`).toBe(shown.privateKeyPem);
    if (calls === callsMax - 1) expect(shown).toBeDefined();
  }
});

test('an identity that was saved is there after a power cut, and never a half of one', async () => {
  for (let calls = 0; calls < callsMax; calls += 1) {
    const files = new ForgetfulFiles();
    const before = identityOf(await open(files).key());
    await open(files).save(before);
    const after = { ...before, certificatePem: 'renewed' };
    files.dieAfter(calls);
    const isSaved = await open(files)
      .save(after)
      .then(() => true)
      .catch(() => false);
    files.cutPower();
    const found = await open(files).load();
    expect(isSaved ? [after] : [before, after], `${calls} calls`).toContainEqual(found);
  }
});

test('after a power cut while a key is replaced, one certified key is there', async () => {
  for (let calls = 0; calls < 2 * callsMax; calls += 1) {
    const files = new ForgetfulFiles();
    const old = await open(files).key();
    await open(files).save(identityOf(old));
    files.dieAfter(calls);
    const taking = async () => {
      const next = await open(files).newKey();
      await open(files).save(identityOf(next));
      await open(files).adoptNewKey(next);
      return next;
    };
    const next = await taking().catch(() => undefined);
    files.cutPower();
    const identity = await open(files).load();
    const key = await open(files).key();
    expect(key.privateKeyPem, `${calls} calls`).toBe(identity?.privateKeyPem);
    if (next !== undefined) expect(key.privateKeyPem).toBe(next.privateKeyPem);
  }
});
