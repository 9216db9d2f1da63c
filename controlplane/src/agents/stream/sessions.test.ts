/** Who may speak for a rack, and for how long (R6, R11). */
import { create } from '@bufbuild/protobuf';
import { agent, HostState, RunPhase, store as wire } from '@rackwright/messages';
import type { MemoryCall, MemoryFault } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { fleetKey } from '../../host/index.ts';
import { failed } from '../../host/testing/bench.ts';
import { connectAgent, PlainAgent, proved } from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';
import type { SessionTrust } from '../base/trust.ts';

const first = { id: 'u1/1/0/1', hostUid: 'u1' };
const generation = (number: bigint) => ({ journal: { id: 'j1', generation: number } });
const stranger = { journal: { id: 'j9', generation: 1n } };
const lifetimeMs = 15_000;
const idleMs = 20_000;

async function started(faults?: (call: MemoryCall) => MemoryFault | Promise<MemoryFault>) {
  const rig = rigWith({});
  const replica = await rig.replica(faults === undefined ? {} : { faults });
  return { rig, replica };
}

/** While `on`, a boot list takes half a second to begin, and so does the opening of a session. */
async function startedSlowly() {
  const slow = { on: false };
  const { rig, replica } = await started(async ({ kind, key }) => {
    // Between Welcome and the opening of a session, only the boot list reads the fleet's record.
    if (slow.on && kind === 'get' && key === fleetKey) {
      await new Promise<void>((resolve) => rig.clock.after(500, resolve));
    }
    return { kind: 'none' };
  });
  return { rig, replica, slow };
}

const refusals = (plain: PlainAgent) => plain.of('refused').map(({ reason }) => reason);
const shown = (rig: Rig) => rig.rack()?.rack?.status?.duplicateAgent ?? '';

describe('a session', () => {
  test('must begin with Hello, and its Hello must name its journal', async () => {
    const { rig, replica } = await started();
    const early = new PlainAgent(rig, replica, 'r1');
    await early.heartbeat();
    expect(refusals(early)).toEqual(['badHello']);
    expect(early.ended).toBe(true);
    const nameless = await connectAgent(rig, replica, { journal: { id: '' } });
    expect(refusals(nameless)).toEqual(['badHello']);
    expect(replica.hosts.isAgentConnected('r1')).toBe(false);
  });

  test('has its lease renewed with every heartbeat, unless the store is away', async () => {
    let away = false;
    const { rig, replica } = await started(() => ({ kind: away ? 'requestLost' : 'none' }));
    const plain = await connectAgent(rig, replica);
    await plain.heartbeat();
    const [lease] = plain.of('leaseRenewal');
    expect(lease).toMatchObject({ heartbeatSequence: 1n, durationMs: lifetimeMs });
    away = true;
    await plain.heartbeat();
    expect(plain.of('leaseRenewal')).toHaveLength(1);
    expect(plain.ended).toBe(true);
  });

  test('a session that a higher generation replaces is ended', async () => {
    const { rig, replica } = await started();
    const old = await connectAgent(rig, replica, generation(1n));
    const next = await connectAgent(rig, replica, generation(2n));
    expect(refusals(next)).toEqual([]);
    expect(old.ended).toBe(true);
    await next.heartbeat();
    expect(next.of('leaseRenewal')).toHaveLength(1);
    expect(replica.hosts.isAgentConnected('r1')).toBe(true);
  });

  test('a session that was replaced and does not hear of it has no powers left', async () => {
    const { rig, replica } = await started();
    const old = await connectAgent(rig, replica, generation(1n));
    old.stall();
    await old.heartbeat();
    const received = old.received.length;
    const next = await connectAgent(rig, replica, generation(2n));
    await old.report(proved(), first);
    await old.heartbeat();
    await old.facts({ poweredOn: true });
    expect(old.received).toHaveLength(received);
    expect(rig.status()).toMatchObject({ state: HostState.NEW });
    expect(rig.status().poweredOn).toBeUndefined();
    await next.report(proved(), first);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });

  test('a session that ends while it is being welcomed is not left standing', async () => {
    const { rig, replica, slow } = await startedSlowly();
    slow.on = true;
    const plain = await connectAgent(rig, replica, {}, 100);
    expect(plain.received.map((message) => message.case)).toEqual(['welcome']);
    await plain.cut();
    await rig.advance(1_000);
    expect(replica.hosts.isAgentConnected('r1')).toBe(false);
    expect(rig.rack()?.sessionReplica).toBe('');
    expect(rig.status().run?.phase).toBe(RunPhase.WAITING);
  });

  test('a session that ends while the next one opens leaves the hint to the next', async () => {
    const { rig, replica, slow } = await startedSlowly();
    const old = await connectAgent(rig, replica, generation(1n));
    await rig.advance(1_000);
    slow.on = true;
    const next = await connectAgent(rig, replica, generation(2n), 100);
    await old.cut();
    await rig.advance(100);
    expect(rig.rack()?.sessionReplica).toBe('single');
    await rig.advance(1_000);
    expect(replica.registry.sessionOf('r1')?.journal.generation).toBe(2n);
    slow.on = false;
    await next.heartbeat();
    expect(next.of('leaseRenewal')).toHaveLength(1);
  });

  test('a session of a lower generation that came later does not replace a higher', async () => {
    const { rig, replica, slow } = await startedSlowly();
    slow.on = true;
    const lower = await connectAgent(rig, replica, generation(1n), 10);
    slow.on = false;
    const higher = await connectAgent(rig, replica, generation(2n));
    expect(replica.registry.sessionOf('r1')?.journal.generation).toBe(2n);
    await rig.advance(1_000);
    expect(replica.registry.sessionOf('r1')?.journal.generation).toBe(2n);
    expect(higher.ended).toBe(false);
    expect(lower.ended).toBe(true);
    await higher.heartbeat();
    expect(higher.of('leaseRenewal')).toHaveLength(1);
  });
});

describe('an agent that reports without end which authorities it trusts', () => {
  test('makes few writes of it, and the last one counts', async () => {
    const { rig, replica } = await started();
    const plain = await connectAgent(rig, replica);
    const before = rig.lastRevision();
    const digest = (n: number) => n.toString(16).padStart(64, '0');
    for (let n = 1; n <= 40; n += 1) {
      plain.send({ case: 'trustApplied', value: { trustedCaSha256: [digest(n)] } });
    }
    await rig.advance(2_500);
    expect(rig.lastRevision() - before).toBeLessThan(20);
    await rig.advance(60_000);
    expect(rig.rack()?.trustedCaSha256).toEqual([digest(40)]);
  });

  const real = 'ab'.repeat(32);
  const trust: SessionTrust = {
    bundle: () => create(agent.TrustBundleSchema),
    existing: async (digests) => digests.filter((each) => each === real),
    onChange: () => undefined,
    attend: () => () => undefined,
  };

  test('has written down only what there is, whatever it makes up', async () => {
    const rig = rigWith({});
    const replica = await rig.replica({ trust });
    const plain = await connectAgent(rig, replica);
    const reportTrust = (...trustedCaSha256: string[]) =>
      plain.say({ case: 'trustApplied', value: { trustedCaSha256 } });
    await reportTrust('cd'.repeat(32), real);
    expect(rig.rack()?.trustedCaSha256).toEqual([real]);
    const before = rig.lastRevision();
    for (let n = 0; n < 10; n += 1) await reportTrust(n.toString(16).padStart(64, '0'), real);
    await rig.advance(30_000);
    expect(rig.rack()?.trustedCaSha256).toEqual([real]);
    expect(rig.lastRevision()).toBe(before);
  });
});

describe('an agent that reports without end about hosts that are not its own', () => {
  test('causes no write to the store', async () => {
    const { rig, replica } = await started();
    const plain = await connectAgent(rig, replica);
    await rig.advance(1_000);
    const before = rig.lastRevision();
    for (let n = 0; n < 50; n += 1) {
      const hostUid = `stranger-${n}`;
      const operationId = `${hostUid}/1/0/1`;
      plain.send({ case: 'heartbeat', value: { sequence: BigInt(n + 1) } });
      plain.send({ case: 'hostForgotten', value: { hostUid } });
      plain.send({ case: 'powerDigest', value: { hosts: [{ hostUid, poweredOn: n % 2 === 0 }] } });
      plain.send({ case: 'discovered', value: { bootMac: `52:54:00:00:01:${n + 10}` } });
      plain.send({ case: 'stepLog', value: { hostUid, operationId } });
      plain.send({ case: 'snapshotApplied', value: {} });
      plain.send({ case: 'report', value: { hostUid, operationId, sequence: BigInt(n + 1) } });
      plain.send({ case: 'trustApplied', value: { trustedCaSha256: [] } });
    }
    await rig.advance(60_000);
    expect(rig.lastRevision() - before).toBeLessThan(5);
    expect(plain.of('leaseRenewal').length).toBeGreaterThan(0);
    expect(plain.ended).toBe(false);
  });
});

describe('an agent that waits for its welcome', () => {
  test('is sent nothing before, whatever changes meanwhile', async () => {
    const slow = { on: false };
    const { rig, replica } = await started(async ({ kind, key }) => {
      if (slow.on && kind === 'put' && key === 'racks.r1') {
        await new Promise<void>((resolve) => rig.clock.after(1_000, resolve));
      }
      return { kind: 'none' };
    });
    slow.on = true;
    const plain = await connectAgent(rig, replica, {}, 100);
    rig.addHost(2);
    await rig.advance(800);
    expect(plain.received).toEqual([]);
    await rig.advance(2_000);
    const [first, second] = plain.received.map((message) => message.case);
    expect([first, second]).toEqual(['welcome', 'bootSnapshot']);
    expect(plain.of('bootSnapshot')[0]?.hosts.map(({ hostUid }) => hostUid)).toContain('u2');
  });
});

describe('a second agent', () => {
  test.each([
    ['with another journal', stranger],
    ['with the same generation', generation(2n)],
    ['with a lower generation', generation(1n)],
  ])('%s is refused, and shown', async (_text, rival) => {
    const { rig, replica } = await started();
    const one = await connectAgent(rig, replica, generation(2n));
    const two = await connectAgent(rig, replica, rival);
    expect(refusals(two)).toEqual(['duplicateAgent']);
    expect(two.of('welcome')).toEqual([]);
    expect(two.ended).toBe(true);
    expect(shown(rig)).toContain('j1');
    await one.heartbeat();
    expect(one.of('leaseRenewal')).toHaveLength(1);
    await one.report(proved(), first);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });

  test('takes over once the first has been silent for longer than any agent is', async () => {
    const { rig, replica } = await started();
    const one = await connectAgent(rig, replica);
    await connectAgent(rig, replica, stranger);
    expect(shown(rig)).not.toBe('');
    await rig.advance(lifetimeMs + idleMs);
    const two = await connectAgent(rig, replica, stranger);
    expect(refusals(two)).toEqual([]);
    expect(one.ended).toBe(true);
    expect(shown(rig)).toBe('');
  });

  test('an agent that comes back and back writes its refusal once', async () => {
    const { rig, replica } = await started();
    await connectAgent(rig, replica);
    await connectAgent(rig, replica, stranger);
    const revision = rig.lastRevision();
    for (let attempt = 0; attempt < 5; attempt++) await connectAgent(rig, replica, stranger);
    expect(rig.lastRevision()).toBe(revision);
  });
});

describe('a session whose rack is no longer its own', () => {
  test.each<[string, (rig: Rig) => void]>([
    ['has another key', replaceKey],
    ['has been deleted', (rig) => rig.remove('racks.r1')],
  ])(
    'the session ends without a lease at its next heartbeat because its rack %s',
    async (_text, change) => {
      const { rig, replica } = await started();
      const plain = await connectAgent(rig, replica);
      await plain.heartbeat();
      change(rig);
      await plain.heartbeat();
      expect(plain.of('leaseRenewal')).toHaveLength(1);
      expect(plain.ended).toBe(true);
      expect(replica.hosts.isAgentConnected('r1')).toBe(false);
      expect(await connectAgent(rig, replica)).toBeDefined();
    },
  );
});

function replaceKey(rig: Rig): void {
  const record = rig.rack();
  if (record === undefined) throw new Error('the rack is gone');
  record.agentPublicKey = Uint8Array.of(1, 2, 3);
  rig.put('racks.r1', wire.RackRecordSchema, record);
}

describe('the agent of another rack', () => {
  async function ofAnother() {
    const { rig, replica } = await started();
    rig.addRack('r2');
    const own = await connectAgent(rig, replica);
    const { JOURNALLED } = agent.JournalledOperation_State;
    const runner = { hostUid: 'u1', bootOperationId: 'u1/1/0/1', runnerSession: 's9' };
    const other = await connectAgent(rig, replica, {
      rackId: 'r2',
      operations: [{ operationId: first.id, hostUid: 'u1', state: JOURNALLED }],
      runners: [runner],
    });
    const record = rig.record();
    return { rig, replica, own, other, record };
  }

  test('is told to drop what it claims of a host, and changes nothing with it', async () => {
    const { rig, other, record } = await ofAnother();
    const { CANCEL } = agent.Directive_Action;
    expect(other.of('welcome')[0]?.directives.map(({ action }) => action)).toEqual([CANCEL]);
    expect(other.ids()).toEqual([]);
    expect(rig.record()).toEqual(record);
    expect(record.runner).toBeUndefined();
    expect(other.of('bootSnapshot').flatMap(({ hosts }) => hosts)).toEqual([]);
  });

  test('is answered stale to its reports, and its facts count for nothing', async () => {
    const { rig, own, other, record } = await ofAnother();
    const revision = rig.lastRevision();
    for (const result of [proved(), failed('authentication')]) await other.report(result, first);
    await other.facts({ poweredOn: true });
    await other.say({ case: 'hostForgotten', value: { hostUid: 'u1' } });
    const { STALE } = agent.ReportAnswer_Verdict;
    expect(other.of('reportAnswer').map(({ verdict }) => verdict)).toEqual([STALE, STALE]);
    expect(rig.lastRevision()).toBe(revision);
    expect(rig.record()).toEqual(record);
    await own.report(proved(), first);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });
});

test('a report on a removed host does not count for a new host of the same name', async () => {
  const { rig, replica } = await started();
  const plain = await connectAgent(rig, replica);
  const { host } = rig.record();
  if (host?.status === undefined) throw new Error('a host has a status');
  const anew = create(wire.HostRecordSchema, { host: { ...host, uid: 'u7' } });
  delete anew.host?.status?.run;
  rig.remove('hosts.h1');
  rig.put('hosts.h1', wire.HostRecordSchema, anew);
  replica.hosts.wake('h1');
  await rig.advance(1);
  await plain.facts({ poweredOn: true }, 'u1');
  expect(rig.status().poweredOn).toBeUndefined();
  await plain.facts({ poweredOn: true }, 'u7');
  expect(rig.status().poweredOn).toBe(true);
});
