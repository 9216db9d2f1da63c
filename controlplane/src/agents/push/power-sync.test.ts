/** Which hosts' power an agent polls, and how its digests are processed. */
import { create } from '@bufbuild/protobuf';
import { agent, HostGoal, HostState, RackSpecSchema, store as wire } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import type { AuditEvent } from '../../audit/index.ts';
import {
  connectAgent,
  type PlainAgent,
  proved,
  toAvailable,
} from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';

const manageable = { goal: HostGoal.MANAGEABLE };

async function started(...specs: Parameters<typeof rigWith>) {
  const rig = rigWith(...specs);
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

const lists = (plain: PlainAgent) => plain.of('powerSync');
const looked = (plain: PlainAgent) =>
  lists(plain)
    .at(-1)
    ?.hosts.map(({ hostUid }) => hostUid);

function setRack(rig: Rig, powerSyncSeconds: number): void {
  const record = rig.rack();
  if (record?.rack === undefined) throw new Error('the rig has a rack');
  record.rack.spec = create(RackSpecSchema, { powerSyncSeconds });
  rig.put('racks.r1', wire.RackRecordSchema, record);
}

async function digest(rig: Rig, plain: PlainAgent, on: boolean | undefined, generation?: bigint) {
  const value = create(agent.PowerDigestSchema, {
    generation: generation ?? lists(plain).at(-1)?.generation ?? 0n,
    hosts: [{ hostUid: 'u1', ...(on === undefined ? {} : { poweredOn: on }) }],
  });
  await plain.say({ case: 'powerDigest', value });
  await rig.advance(10);
}

describe('the list of hosts to look at', () => {
  test('comes after Welcome, and names no host that is not proved', async () => {
    const { plain } = await started(manageable);
    expect(lists(plain)).toMatchObject([{ periodMs: 60_000, hosts: [] }]);
    const kinds = plain.received.map((message) => message.case);
    expect(kinds.indexOf('powerSync')).toBeGreaterThan(kinds.indexOf('welcome'));
  });

  test('names a host once its BMC is proved, after the secret for it', async () => {
    const { rig, plain } = await started(manageable);
    await plain.report(proved());
    await rig.advance(2_100);
    expect(looked(plain)).toEqual(['u1']);
    expect(lists(plain).at(-1)?.hosts[0]).toMatchObject({
      hostName: 'hosts/h1',
      bmc: { address: '10.0.0.1', credential: 'credentials/c1', credentialVersion: 1n },
      expectedIdentity: { serial: 'SN-1' },
    });
    const kinds = plain.received.map((message) => message.case);
    expect(kinds.lastIndexOf('credentialValue')).toBeLessThan(kinds.lastIndexOf('powerSync'));
  });

  test('sends each secret on record, by its name and version', async () => {
    const rig = rigWith(manageable);
    const events: AuditEvent[] = [];
    const replica = await rig.replica({ audit: { note: (event) => void events.push(event) } });
    const plain = await connectAgent(rig, replica);
    await plain.report(proved());
    await rig.advance(2_100);
    expect(looked(plain)).toEqual(['u1']);
    const { length } = plain.of('credentialValue');
    expect(events.filter(({ operationId }) => operationId === '')).toMatchObject([
      {
        kind: 'secretSent',
        resource: 'credentials/c1',
        message: 'version 1 to the agent of racks/r1',
      },
    ]);
    await plain.beat(60_000);
    expect(plain.of('credentialValue')).toHaveLength(length);
    expect(events).toHaveLength(1);
  });

  test('is not sent again while it says the same', async () => {
    const { rig, plain } = await started(manageable);
    await plain.report(proved());
    await rig.advance(2_100);
    const { length } = lists(plain);
    await plain.facts({ poweredOn: true });
    await plain.facts({ poweredOn: false });
    await plain.beat(120_000);
    expect(lists(plain)).toHaveLength(length);
  });

  test('follows a new version of the credential, and brings its secret', async () => {
    const { rig, plain } = await started(manageable);
    await plain.report(proved());
    await rig.advance(2_100);
    const secrets = plain.of('credentialValue').length;
    const credential = { name: 'credentials/c1', version: 2n };
    rig.put('credentials.c1', wire.CredentialRecordSchema, { credential });
    await plain.beat(33_000);
    expect(lists(plain).at(-1)?.hosts[0]?.bmc?.credentialVersion).toBe(2n);
    expect(plain.of('credentialValue').slice(secrets)).toMatchObject([{ version: 2n }]);
  });

  test('leaves out a host whose BMC is another since it was proved', async () => {
    const { rig, replica, plain } = await started(manageable);
    await plain.report(proved());
    await rig.advance(2_100);
    const spec = structuredClone(rig.record().host?.spec);
    if (spec?.bmc === undefined) throw new Error('a host has a BMC');
    spec.bmc.address = '10.0.0.99';
    await replica.request({ kind: 'update', spec, labels: {} });
    await rig.advance(2_100);
    expect(looked(plain)).toEqual([]);
  });

  test('leaves out a host whose credential is not for its BMC, and sends no secret', async () => {
    const { rig, plain } = await started(manageable, manageable);
    await plain.report(proved(1), plain.last('u1'));
    await plain.report(proved(2), plain.last('u2'));
    await rig.advance(2_100);
    expect(looked(plain)).toEqual(['u1', 'u2']);
    const secrets = plain.of('credentialValue').length;
    const credential = { name: 'credentials/c1', version: 2n, bmcNetworks: ['10.0.0.2/32'] };
    rig.put('credentials.c1', wire.CredentialRecordSchema, { credential });
    await plain.beat(33_000);
    expect(looked(plain)).toEqual(['u2']);
    expect(plain.of('credentialValue').slice(secrets)).toMatchObject([{ version: 2n }]);
    const elsewhere = { name: 'credentials/c1', version: 3n, racks: ['racks/r2'] };
    rig.put('credentials.c1', wire.CredentialRecordSchema, { credential: elsewhere });
    await plain.beat(33_000);
    expect(looked(plain)).toEqual([]);
    expect(plain.of('credentialValue').slice(secrets)).toHaveLength(1);
  });

  test('leaves out a host that is being forgotten', async () => {
    const { rig, replica, plain } = await started(manageable, manageable);
    await plain.report(proved(1), plain.last('u1'));
    await plain.report(proved(2), plain.last('u2'));
    await rig.advance(2_100);
    expect(looked(plain)).toEqual(['u1', 'u2']);
    await replica.request({ kind: 'delete', reason: 'sold' });
    await rig.advance(2_100);
    expect(looked(plain)).toEqual(['u2']);
  });

  test('has the rack’s period at the next heartbeat, and is empty when that is 0', async () => {
    const { rig, plain } = await started(manageable);
    await plain.report(proved());
    await rig.advance(2_100);
    setRack(rig, 10);
    await plain.beat(3_000);
    await rig.advance(10);
    expect(lists(plain).at(-1)).toMatchObject({ periodMs: 10_000, hosts: [{ hostUid: 'u1' }] });
    setRack(rig, 0);
    await plain.beat(3_000);
    await rig.advance(10);
    expect(lists(plain).at(-1)).toMatchObject({ periodMs: 0, hosts: [] });
  });

  test('is sent once the store answers, when it did not at first', async () => {
    let away = false;
    const rig = rigWith(manageable);
    const replica = await rig.replica({
      faults: ({ key }) => ({ kind: away && key === 'racks.r1' ? 'requestLost' : 'none' }),
    });
    const plain = await connectAgent(rig, replica);
    const { length } = lists(plain);
    away = true;
    setRack(rig, 20);
    away = false;
    await plain.beat(3_000);
    await rig.advance(10);
    expect(lists(plain).slice(length)).toMatchObject([{ periodMs: 20_000 }]);
  });
});

describe('a digest', () => {
  async function available() {
    const { rig, replica, plain } = await started({});
    await toAvailable(rig, plain);
    await rig.advance(2_100);
    expect(rig.status()).toMatchObject({ state: HostState.AVAILABLE, poweredOn: false });
    return { rig, replica, plain };
  }

  test('a digest that says what is known writes nothing', async () => {
    const { rig, plain } = await available();
    const revision = rig.lastRevision('hosts');
    await digest(rig, plain, false);
    await digest(rig, plain, undefined);
    expect(rig.lastRevision('hosts')).toBe(revision);
  });

  test('stands for a report that was lost', async () => {
    const { rig, plain } = await available();
    await digest(rig, plain, true);
    expect(rig.status()).toMatchObject({ state: HostState.MANAGEABLE, dirty: true, useEpoch: 2n });
  });

  test('a digest of an older list counts for nothing', async () => {
    const { rig, plain } = await available();
    await digest(rig, plain, true, 1n);
    expect(rig.status()).toMatchObject({ state: HostState.AVAILABLE, useEpoch: 1n });
  });

  test('a digest of a host of another rack, or of none, counts for nothing', async () => {
    const { rig, plain } = await available();
    const revision = rig.lastRevision('hosts');
    const generation = lists(plain).at(-1)?.generation ?? 0n;
    const hosts = [{ hostUid: 'u9', poweredOn: true }];
    await plain.say({ case: 'powerDigest', value: { generation, hosts } });
    expect(rig.lastRevision('hosts')).toBe(revision);
    expect(plain.ended).toBe(false);
  });
});

test('a host without a run and with a silent BMC writes nothing at each round', async () => {
  const { rig, plain } = await started(manageable);
  await plain.report(proved());
  const bmcHealth = { reachable: false, cause: 'unreachable', message: 'no answer' };
  await plain.facts({ bmcHealth });
  const revision = rig.lastRevision('hosts');
  for (let round = 0; round < 5; round++) {
    await plain.beat(60_000);
    await digest(rig, plain, undefined);
  }
  expect(rig.lastRevision('hosts')).toBe(revision);
});

describe('an older agent', () => {
  const few = ['verifyAccess', 'cancel'];

  test('is not sent what it did not name; the run waits for it, and says so', async () => {
    const rig = rigWith({});
    const replica = await rig.replica();
    const plain = await connectAgent(rig, replica, { operationKinds: few });
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    await plain.report(proved());
    expect(plain.ids()).toEqual(['u1/1/0/1']);
    const told = await rig.during(replica.hosts.explain('h1'), 1);
    expect(told?.blocker).toBe('the agent of the rack');
    expect(told?.causes.map(({ text }) => text).join()).toContain('does not know setPower');
    await plain.cut();
    const journal = { id: 'j1', generation: 2n };
    const updated = await connectAgent(rig, replica, { journal });
    expect(updated.ids()).toEqual(['u1/2/0/1']);
  });

  test('an agent that names nothing is sent nothing', async () => {
    const rig = rigWith({});
    const replica = await rig.replica();
    const plain = await connectAgent(rig, replica, { operationKinds: [] });
    expect(plain.ids()).toEqual([]);
  });
});
