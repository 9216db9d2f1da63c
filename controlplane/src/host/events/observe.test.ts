/** Observations of a host without an order, and their effect on its readiness. */
import { clone } from '@bufbuild/protobuf';
import { HostGoal, HostSpecSchema, HostState, RunKind, userActor } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { bootOfRunner, erased, inspected, nvmeDisk, virtioDisk } from '../testing/bench.ts';
import {
  afterErase,
  complete,
  connectAgent,
  type PlainAgent,
  proved,
  runnerUp,
  toAvailable,
  toInspect,
} from '../testing/plain-agent.ts';
import { type Rig, rigWith } from '../testing/rig.ts';

const { AVAILABLE, MANAGEABLE } = HostState;
const netboot = { unexpectedNetboot: { hostUid: 'u1', mac: '52:54:00:00:00:01' } };
const switchedOn = { poweredOn: true };
const inspect = { kind: 'inspect' } as const;
const verify = { kind: 'verify' } as const;

async function available() {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await toAvailable(rig, plain);
  expectReady(rig);
  return { rig, replica, plain };
}

/** A host with the goal manageable, cleaned on request. */
async function cleanByHand() {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  await replica.request({ kind: 'clean', steps: [] });
  await toInspect(rig, plain);
  await plain.report(inspected());
  await afterErase(plain, plain.evidence([erased(virtioDisk)]));
  expect(rig.status()).toMatchObject({ state: MANAGEABLE, dirty: false, useEpoch: 1n });
  return { rig, replica, plain };
}

function expectReady(rig: Rig) {
  expect(rig.status()).toMatchObject({ state: AVAILABLE, dirty: false, useEpoch: 1n });
}

function expectUsed(rig: Rig) {
  expect(rig.status()).toMatchObject({ state: MANAGEABLE, dirty: true, useEpoch: 2n });
}

/** The present run, up to its runner's inventory. */
async function inspectFinds(rig: Rig, plain: PlainAgent, ...disks: (typeof virtioDisk)[]) {
  await toInspect(rig, plain);
  await plain.report(inspected(disks));
}

test('a run that waits for its runner says why that was refused, until it is there', async () => {
  const rig = rigWith({});
  const plain = await connectAgent(rig, await rig.replica());
  await plain.report(proved());
  await plain.report(complete());
  await plain.report(complete());
  const bootOperationId = bootOfRunner(rig.status().run);
  const message = 'the kernel started 43000 ms before the host was powered on';
  await plain.facts({ runnerRefused: { bootOperationId: 'u1/9/9/9', message: 'of another boot' } });
  expect(rig.status().run?.waiting?.message).toBe('the host is booting into the runner');
  await plain.facts({ runnerRefused: { bootOperationId, message } });
  const told = { reason: 'runner', message: `its runner was refused: ${message}` };
  expect(rig.status().run?.waiting).toMatchObject(told);
  await runnerUp(rig, plain);
  expect(rig.status().run?.waiting).toBeUndefined();
});

describe('an available host', () => {
  test('a host that an inspection finds as it was stays available', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(inspect);
    await inspectFinds(rig, plain, virtioDisk);
    await plain.report(complete());
    expectReady(rig);
  });

  test('a host with an unerased disk is available no more, and is cleaned again', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(inspect);
    await inspectFinds(rig, plain, virtioDisk, nvmeDisk);
    expectUsed(rig);
    await plain.report(complete());
    expect(rig.status().run?.kind).toBe(RunKind.CLEAN);
  });

  test('a host that is seen switched on without an order is available no more', async () => {
    const { rig, plain } = await available();
    await plain.facts({ poweredOn: false });
    expectReady(rig);
    await plain.facts(switchedOn);
    expectUsed(rig);
  });

  test('a host that a verify finds switched on is available no more', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(verify);
    await plain.report(proved(1, switchedOn));
    expectUsed(rig);
  });

  test('a host with a reported netboot stays ready until its BMC says that it is on', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(verify);
    await plain.facts(netboot);
    expectReady(rig);
    await plain.report(proved(1, switchedOn));
    expectUsed(rig);
  });

  test('a host that is seen on, or netboots, for an inspection stays available', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(inspect);
    await plain.report(complete());
    await plain.facts(switchedOn);
    await plain.facts(netboot);
    expectReady(rig);
  });

  test('a host that is seen on before its inspection orders it is available no more', async () => {
    const { rig, replica, plain } = await available();
    await replica.request(inspect);
    expect(plain.last().kind.value).toMatchObject({ on: false });
    await plain.facts(netboot);
    expectReady(rig);
    await plain.facts(switchedOn);
    expectUsed(rig);
  });

  test('a host that is seen on while it is being switched off is available no more', async () => {
    const { rig, replica, plain } = await available();
    await replica.request({ kind: 'powerOff' });
    await plain.facts(switchedOn);
    expectUsed(rig);
  });
});

describe('a clean manageable host', () => {
  test('a host that is seen switched on without an order is dirty', async () => {
    const { rig, plain } = await cleanByHand();
    await plain.facts(netboot);
    expect(rig.status()).toMatchObject({ dirty: false, useEpoch: 1n });
    await plain.facts(switchedOn);
    expectUsed(rig);
  });

  test('a host that its operator switches on is used once, by that order', async () => {
    const { rig, replica, plain } = await cleanByHand();
    await replica.request({ kind: 'powerOn', bootOldDiskReason: '' });
    await plain.facts(switchedOn);
    expectUsed(rig);
    await plain.report(complete());
    await plain.facts(switchedOn);
    expectUsed(rig);
  });
});

describe('an available host that is wanted no more', () => {
  test.each([
    ['by its goal', { goal: HostGoal.MANAGEABLE }],
    ['because it is retired', { retired: true }],
  ])('ceases to be available %s, and is cleaned before it returns', async (_text, change) => {
    const { rig, replica, plain } = await available();
    const wanted = rig.record().host?.spec;
    if (wanted === undefined) throw new Error('a host has a spec');
    const update = (changes: object) => {
      const spec = Object.assign(clone(HostSpecSchema, wanted), changes);
      return replica.request({ kind: 'update', spec, labels: {} });
    };
    await update(change);
    expect(rig.status()).toMatchObject({ state: MANAGEABLE, dirty: false });
    expect(rig.record().change?.cause).toContain('no longer available');
    const orders = plain.ids().length;
    await update({});
    expect(rig.status()).toMatchObject({ state: MANAGEABLE, run: { kind: RunKind.CLEAN } });
    expect(plain.ids()).toHaveLength(orders + 1);
  });
});

test('a request that is repeated with its old etag is answered the same', async () => {
  const rig = rigWith({ goal: HostGoal.MANAGEABLE });
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  await plain.report(proved());
  const etag = rig.lastRevision('hosts');
  const ask = (requestId: string) =>
    rig.during(
      replica.hosts.request('h1', verify, { actor: userActor('test'), requestId }, etag),
      1,
    );
  const first = await ask('q1');
  expect(first.kind).toBe('accepted');
  const revision = rig.lastRevision();
  expect(await ask('q1')).toEqual(first);
  expect(await ask('q2')).toMatchObject({ kind: 'refused', code: 'aborted' });
  expect(rig.lastRevision()).toBe(revision);
  expect(plain.ids()).toHaveLength(2);
});
