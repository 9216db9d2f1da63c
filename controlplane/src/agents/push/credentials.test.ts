/** A credential that cannot be opened affects only its own host. */
import { FailureType, HostState, RunKind, store as wire } from '@rackwright/messages';
import type { MemoryCall, MemoryFault } from '@rackwright/store';
import { expect, test } from 'vitest';
import { connectAgent, proved } from '../../host/testing/plain-agent.ts';
import { rigWith } from '../../host/testing/rig.ts';

const spec = { bmc: { address: '10.0.0.1', credential: 'credentials/sealed' } };

/** h1 names a credential that cannot be opened, h2 one that can. */
async function sealedForOne(faults?: (call: MemoryCall) => MemoryFault) {
  const rig = rigWith(spec, {});
  const credential = { name: 'credentials/sealed', version: 1n };
  rig.put('credentials.sealed', wire.CredentialRecordSchema, { credential });
  const opening = { fails: true };
  const replica = await rig.replica({
    ...(faults === undefined ? {} : { faults }),
    openCredential: (record) => {
      if (opening.fails && record.credential?.name === 'credentials/sealed') {
        throw new Error('it was sealed with the key k7, which is not here');
      }
      return { username: 'admin', password: 'secret' };
    },
  });
  return { rig, replica, opening };
}

test('an unusable credential fails its host with a reason, and no other host', async () => {
  const { rig, replica } = await sealedForOne();
  const plain = await connectAgent(rig, replica);
  const failure = rig.status().lastError?.failure;
  expect(failure?.type).toBe(FailureType.CREDENTIAL_UNUSABLE);
  expect(failure?.message).toContain('k7');
  expect(plain.ended).toBe(false);
  expect(plain.ids()).toEqual(['u2/1/0/1']);
  await plain.report(proved(2));
  expect(rig.status('h2')).toMatchObject({
    state: HostState.MANAGEABLE,
    run: { kind: RunKind.INSPECT },
  });
});

test('explain names a remedy for an unusable credential that helps at once', async () => {
  const { rig, replica, opening } = await sealedForOne();
  const plain = await connectAgent(rig, replica);
  const told = await rig.during(replica.hosts.explain('h1'), 1);
  expect(told?.causes.map(({ text }) => text).join('\n')).toContain('k7');
  expect(told?.unblock.join('\n')).toContain('rackwright credential update sealed');
  opening.fails = false;
  const credential = { name: 'credentials/sealed', version: 2n };
  rig.put('credentials.sealed', wire.CredentialRecordSchema, { credential });
  replica.hosts.wake('h1');
  await rig.advance(1);
  expect(plain.last('u1').id).toBe('u1/2/0/1');
  await plain.report(proved(), plain.last('u1'));
  expect(rig.status().state).toBe(HostState.MANAGEABLE);
});

test('an unusable credential is tried again by itself, and given up in the end', async () => {
  const { rig, replica } = await sealedForOne();
  const plain = await connectAgent(rig, replica);
  await plain.beat(3 * 3_600_000);
  expect(rig.status().backoff?.givenUpReason).toContain('in a row failed');
  expect(rig.record().runCount).toBe(3n);
});

test('a credential is not taken for unusable when the store did not answer', async () => {
  let reads = Infinity;
  const { rig, replica, opening } = await sealedForOne(({ kind, key }) => {
    if (kind !== 'get' || key !== 'credentials.sealed') return { kind: 'none' };
    reads -= 1;
    return { kind: reads === 0 ? 'requestLost' : 'none' };
  });
  opening.fails = false;
  await rig.advance(1);
  // The first read of the pass finds it; the one before sending does not.
  reads = 2;
  const plain = await connectAgent(rig, replica);
  expect(reads).toBeLessThan(1);
  await plain.beat(30_000);
  expect(rig.status().lastError).toBeUndefined();
  expect(plain.last('u1').id).toMatch(/^u1\/1\/0\//);
  await plain.report(proved(), plain.last('u1'));
  expect(rig.status().state).toBe(HostState.MANAGEABLE);
});

test.each([
  ['network', { bmcNetworks: ['10.0.9.0/24'] }, '10.0.0.1 is not there'],
  ['rack', { racks: ['racks/r2'] }, 'for hosts of racks/r2 alone'],
])(
  'a credential goes only to %s that it names, whatever a host says',
  async (_, limits, message) => {
    const { rig, replica, opening } = await sealedForOne();
    opening.fails = false;
    const credential = { name: 'credentials/sealed', version: 1n, ...limits };
    rig.put('credentials.sealed', wire.CredentialRecordSchema, { credential });
    const plain = await connectAgent(rig, replica);
    expect(rig.status().lastError?.failure).toMatchObject({
      type: FailureType.CREDENTIAL_UNUSABLE,
      message: expect.stringContaining(message),
    });
    const told = await rig.during(replica.hosts.explain('h1'), 1);
    expect(told?.causes.map(({ text }) => text).join('\n')).toContain(message);
    expect(told?.unblock.join('\n')).toContain('rackwright host update h1 --credential');
    expect(plain.ids()).toEqual(['u2/1/0/1']);
    expect(plain.of('credentialValue').map(({ name }) => name)).toEqual(['credentials/c1']);
  },
);
