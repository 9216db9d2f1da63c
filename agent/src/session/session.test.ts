/** R6, R7, R9, R10, R11: the rules between the agent and the control plane, session by session. */
import { create } from '@bufbuild/protobuf';
import { agent, asRevision, failureWord } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { journalPath, World } from './testing/world.ts';

async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

describe('R6: one session at a time', () => {
  test('says Hello first, with the same journal and a higher generation in each life', async () => {
    const world = await connected();
    await world.restart();
    await world.restart();
    const journals = world.controlPlane.hellos.map(({ journal }) => journal);
    expect(journals.map((journal) => journal?.generation)).toEqual([1n, 2n, 3n]);
    expect(new Set(journals.map((journal) => journal?.id)).size).toBe(1);
  });

  test('does not hear what an abandoned stream still brings', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.latencyMs = 50;
    controlPlane.lateMessages = true;
    controlPlane.send({ case: 'operation', value: world.erase('h/1/1/1') });
    controlPlane.latencyMs = 2;
    controlPlane.cut();
    await world.run(10_000);
    expect(world.touched).toEqual([]);
    expect(world.logged.join('\n')).not.toContain('before Welcome');
    expect(controlPlane.connected).toBe(true);
  });

  test('keeps asking when it is refused, with pauses that grow to their cap', async () => {
    const world = new World();
    world.controlPlane.refusal = create(agent.RefusedSchema, { reason: 'duplicateAgent' });
    world.boot();
    await world.run(600_000);
    const asked = world.controlPlane.hellos.length;
    expect(asked).toBeGreaterThan(20);
    expect(asked).toBeLessThan(80);
    expect(world.session?.status()).toMatchObject({ kind: 'waiting' });
    expect(world.logged.join('\n')).toContain('duplicateAgent');
    world.controlPlane.refusal = undefined;
    await world.run(31_000);
    expect(world.session?.status()).toMatchObject({ kind: 'connected' });
  });

  test('reconnects by itself after the control plane was away', async () => {
    const world = await connected();
    world.controlPlane.reachable = false;
    world.controlPlane.cut();
    await world.run(300_000);
    world.controlPlane.reachable = true;
    await world.run(31_000);
    expect(world.session?.status()).toMatchObject({ kind: 'connected' });
    await world.issue(world.erase('h/1/1/1'));
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
  });

  test('gives up a stream that is silent, and one that brings no Welcome', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 0;
    await world.run(120_000);
    expect(world.controlPlane.hellos.length).toBeGreaterThan(1);
    expect(world.logged.join('\n')).toContain('silent for more than');
    const mute = new World();
    mute.controlPlane.latencyMs = 40_000;
    mute.boot();
    await mute.run(90_000);
    expect(mute.logged.join('\n')).toContain('no Welcome within');
  });

  test('gives up a stream that brings anything before Welcome', async () => {
    const world = new World();
    world.controlPlane.latencyMs = 10;
    world.boot();
    await world.run(5);
    world.controlPlane.send({ case: 'operation', value: world.erase('h/1/1/1') });
    await world.run(14);
    expect(world.logged.join('\n')).toContain('operation before Welcome');
    expect(world.touched).toEqual([]);
  });

  test('stops for good when it is told to', async () => {
    const world = await connected();
    world.session?.stop();
    await world.run(100_000);
    expect(world.controlPlane.hellos).toHaveLength(1);
    expect(world.session?.status()).toEqual({ kind: 'stopped' });
  });
});

describe('R7: every answer lets the agent drop the report', () => {
  for (const name of ['APPLIED', 'DUPLICATE', 'STALE', 'REFUSED'] as const) {
    test(`${name.toLowerCase()} ends redelivery`, async () => {
      const world = await connected();
      world.controlPlane.verdict = agent.ReportAnswer_Verdict[name];
      await world.issue(world.verify('h/1/1/1'));
      world.controlPlane.cut();
      await world.run(5000);
      expect(world.controlPlane.reports).toHaveLength(1);
    });
  }

  test('an answer that says nothing, or speaks of another report, does not', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.verdict = agent.ReportAnswer_Verdict.UNSPECIFIED;
    controlPlane.settles = false;
    controlPlane.direct = () => agent.Directive_Action.CONTINUE;
    await world.issue(world.verify('h/1/1/1'));
    const verdict = agent.ReportAnswer_Verdict.APPLIED;
    const value = { sequence: 9n, operationId: 'h/1/1/1', verdict, settledUpTo: 9n };
    controlPlane.send({ case: 'reportAnswer', value });
    controlPlane.cut();
    await world.run(5000);
    expect(controlPlane.reports.map(({ sequence }) => sequence)).toEqual([1n, 1n]);
  });

  test('unanswered reports come again in order, in each session and each life', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.answers = false;
    for (const host of ['a', 'b', 'c']) await world.issue(world.power(`${host}/1/1/1`), 30);
    controlPlane.cut();
    await world.run(5000);
    await world.restart();
    const wanted = ['a/1/1/1', 'b/1/1/1', 'c/1/1/1'];
    const told = controlPlane.reports.map(({ operationId }) => operationId);
    expect(told).toEqual([...wanted, ...wanted, ...wanted]);
    const sequences = controlPlane.reports.slice(0, 3).map(({ sequence }) => sequence);
    expect(sequences).toEqual([1n, 2n, 3n]);
    controlPlane.answers = true;
    await world.restart();
    await world.restart();
    expect(controlPlane.reports).toHaveLength(12);
  });

  test('come in the order in which they ended, not in which they began', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.answers = false;
    world.work = async ({ id }) => {
      await world.clock.sleep(id.startsWith('slow') ? 50 : 5);
      return { kind: 'complete' };
    };
    controlPlane.issue(world.verify('slow/1/1/1'));
    await world.issue(world.verify('quick/1/1/1'));
    controlPlane.cut();
    await world.run(5000);
    const told = controlPlane.reports.map(({ operationId }) => operationId);
    expect(told.slice(2)).toEqual(['quick/1/1/1', 'slow/1/1/1']);
  });

  test('an answer to a later report does not settle an unanswered one', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.answers = false;
    await world.issue(world.verify('a/1/1/1'));
    controlPlane.answers = true;
    await world.issue(world.verify('b/1/1/1'));
    expect(world.session?.operationState('a/1/1/1')).toBe('ended');
    expect(world.session?.operationState('b/1/1/1')).toBe('unknown');
    controlPlane.cut();
    await world.run(5000);
    expect(controlPlane.outcome('a/1/1/1')).toEqual({ kind: 'complete' });
  });

  test('an id is kept until it is settled, and sequences never start again', async () => {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.settles = false;
    await world.issue(world.verify('h/1/1/1'));
    expect(world.session?.operationState('h/1/1/1')).toBe('ended');
    controlPlane.direct = () => agent.Directive_Action.CONTINUE;
    await world.restart();
    expect(controlPlane.hellos[1]?.operations).toMatchObject([{ answered: true }]);
    controlPlane.settles = true;
    await world.issue(world.verify('h/1/1/2'));
    await world.restart();
    expect(controlPlane.hellos[2]?.operations).toEqual([]);
    await world.issue(world.verify('h/1/1/3'));
    expect(controlPlane.reports.at(-1)?.sequence).toBe(3n);
  });
});

describe('R9: a lost journal is noticed', () => {
  test('comes back under another id, and runs nothing that the lost one had', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      await context.begin();
      touch();
      return new Promise(() => undefined);
    };
    await world.issue(world.erase('h/1/1/1'));
    world.kill();
    world.disk.remove(journalPath);
    await world.bootAndConnect();
    const [before, after] = world.controlPlane.hellos;
    expect(after?.journal?.id).not.toBe(before?.journal?.id);
    expect(after?.operations).toEqual([]);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'interrupted' });
    expect(world.touched).toEqual(['h/1/1/1']);
  });
});

describe('R10: Hello is the reconciliation', () => {
  /** A life that left one operation of each kind, and the next one connected. */
  async function leftovers(
    direct: (line: agent.JournalledOperation) => agent.Directive_Action | undefined,
  ): Promise<World> {
    const world = await connected();
    const { controlPlane } = world;
    controlPlane.answers = false;
    await world.issue(world.verify('ended/1/1/1'));
    world.work = async (_operation, context, touch) => {
      await context.begin();
      touch();
      return new Promise(() => undefined);
    };
    await world.issue(world.erase('begun/1/1/1'));
    world.crashAt = { name: 'agent.journalled', occurrence: 1 };
    await world.issue(world.erase('received/1/1/1'));
    controlPlane.issued.clear();
    controlPlane.reports.length = 0;
    controlPlane.direct = direct;
    world.resume = (_operation, context) =>
      new Promise((resolve) => {
        const stopped = { kind: 'failed', type: 'cancelled', message: 'stopped' } as const;
        context.signal.addEventListener('abort', () => resolve(stopped), { once: true });
      });
    await world.bootAndConnect();
    return world;
  }

  test('lists every operation with how far it came', async () => {
    const world = await leftovers(() => agent.Directive_Action.CONTINUE);
    const lines = world.controlPlane.hellos[1]?.operations.map((line) => [
      line.operationId,
      line.hostUid,
      line.state,
    ]);
    const { ENDED, BEGUN, JOURNALLED } = agent.JournalledOperation_State;
    expect(lines).toEqual([
      ['ended/1/1/1', 'ended', ENDED],
      ['begun/1/1/1', 'begun', BEGUN],
      ['received/1/1/1', 'received', JOURNALLED],
    ]);
    expect(world.touched).toEqual(['ended/1/1/1', 'begun/1/1/1', 'received/1/1/1']);
    expect(world.controlPlane.reports.map(({ operationId }) => operationId)).toEqual([
      'ended/1/1/1',
    ]);
  });

  test('cancel stops what runs or waits, and each is reported', async () => {
    const world = await leftovers(() => agent.Directive_Action.CANCEL);
    const results = world.controlPlane.reports.map(({ operationId, result }) => {
      const end = result.case === 'failed' ? failureWord(result.value.type) : result.case;
      return [operationId, end] as const;
    });
    expect(Object.fromEntries(results)).toEqual({
      'begun/1/1/1': 'cancelled',
      'ended/1/1/1': 'complete',
      'received/1/1/1': 'cancelled',
    });
  });

  test('forget drops all of it without a word, for ever', async () => {
    const world = await leftovers(() => agent.Directive_Action.FORGET);
    expect(world.controlPlane.reports).toEqual([]);
    await world.restart();
    expect(world.controlPlane.hellos[2]?.operations).toEqual([]);
    expect(world.touched).toEqual(['ended/1/1/1', 'begun/1/1/1']);
  });

  test('without a word from the control plane nothing that waits starts', async () => {
    const world = await leftovers(() => undefined);
    expect(world.session?.operationState('received/1/1/1')).toBe('received');
    expect(world.session?.operationState('begun/1/1/1')).toBe('begun');
    expect(world.touched).not.toContain('received/1/1/1');
  });

  test('reports the highest store revision seen, and the open grants', async () => {
    const world = await connected();
    world.work = async ({ id }, context, touch) => {
      await context.begin();
      await context.openGrant({ macs: ['52:54:00:00:00:01'], expiresAtMs: 1_800_000_000_000 });
      touch();
      return id === '' ? { kind: 'complete' } : { kind: 'complete' };
    };
    await world.issue(world.power('h/1/1/1', { on: true }));
    world.controlPlane.revision = asRevision(42);
    await world.restart();
    await world.restart();
    expect(world.controlPlane.hellos[0]).toMatchObject({ incarnation: '', revision: 0n });
    expect(world.controlPlane.hellos[1]).toMatchObject({ incarnation: 'incarnation-1' });
    expect(world.controlPlane.hellos[2]).toMatchObject({
      revision: 42n,
      grants: [{ operationId: 'h/1/1/1', hostUid: 'h', bound: false }],
    });
  });
});

describe('R11: no work lease, nothing destructive begins', () => {
  test('an erasure waits for the lease and begins when the lease comes', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 0;
    await world.run(10_000);
    expect(world.session?.isLeaseValid()).toBe(false);
    await world.issue(world.erase('h/1/1/1'), 10_000);
    expect(world.touched).toEqual([]);
    const told = world.controlPlane.facts.map(({ operationId, result }) => [operationId, result]);
    const value = { step: 'deploy.erase_devices', text: 'waits for the work lease' };
    expect(told).toMatchObject([['h/1/1/1', { case: 'continuing', value }]]);
    world.controlPlane.leaseMs = 5000;
    await world.run(3000);
    expect(world.touched).toEqual(['h/1/1/1']);
  });

  test('ends retryAfter when none comes until the deadline', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 0;
    await world.run(10_000);
    await world.issue(world.operation('h/1/1/1', world.erase('h/1/1/1').kind, 5000), 6000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind: 'retryAfter',
      reason: 'notReady',
    });
    expect(world.touched).toEqual([]);
  });

  test('asks none for power, access, or a check that writes nothing', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 0;
    await world.run(10_000);
    await world.issue(world.power('h/1/1/1'));
    await world.issue(world.verify('h/1/2/1'));
    await world.issue(world.erase('h/1/3/1', { mode: agent.StepMode.CHECK }));
    await world.issue(world.erase('h/1/4/1', { destructive: false }));
    expect(world.touched).toEqual(['h/1/1/1', 'h/1/2/1', 'h/1/3/1', 'h/1/4/1']);
  });

  test('runs from the sending of the heartbeat, not from the coming of its answer', async () => {
    const world = new World();
    world.controlPlane.latencyMs = 2000;
    world.controlPlane.heartbeatIntervalMs = 20_000;
    world.boot();
    // Hello and Welcome take 4 s; the heartbeat is sent at 4 s and answered at 8 s.
    await world.run(8100);
    expect(world.session?.isLeaseValid()).toBe(true);
    await world.run(800);
    expect(world.session?.isLeaseValid()).toBe(true);
    await world.run(200);
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('runs out while the machine is suspended', async () => {
    const world = await connected();
    expect(world.session?.isLeaseValid()).toBe(true);
    world.clock.suspend(6000);
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('runs out without work, and comes with the heartbeat that work is worth', async () => {
    const world = new World();
    world.controlPlane.idleHeartbeatIntervalMs = 20_000;
    await world.bootAndConnect();
    await world.run(10_000);
    expect(world.session?.isLeaseValid()).toBe(false);
    await world.issue(world.erase('h/1/1/1'), 100);
    expect(world.touched).toEqual(['h/1/1/1']);
    await world.run(10_000);
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('goes on while work is under way, or a host is to boot into the runner', async () => {
    const world = new World();
    world.controlPlane.idleHeartbeatIntervalMs = 20_000;
    await world.bootAndConnect();
    world.work = async (_operation, context) => {
      await context.begin();
      await world.clock.sleep(10_000);
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'), 100);
    await world.run(9_000);
    expect(world.session?.isLeaseValid()).toBe(true);
    await world.run(15_000);
    expect(world.session?.isLeaseValid()).toBe(false);
    const expiresAtMs = world.clock.wallAheadMs + world.clock.nowMs + 60_000;
    world.work = async (_operation, context) => {
      await context.openGrant({ macs: ['52:54:00:00:00:01'], expiresAtMs });
      return { kind: 'complete' };
    };
    await world.issue(world.power('h/2/1/1', { on: true }), 40_000);
    expect(world.session?.isLeaseValid()).toBe(true);
    await world.run(60_000);
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('is not moved by a wall clock that steps', async () => {
    const world = await connected();
    world.clock.wallAheadMs += 86_400_000;
    expect(world.session?.isLeaseValid()).toBe(true);
    world.clock.wallAheadMs -= 2 * 86_400_000;
    expect(world.session?.isLeaseValid()).toBe(true);
  });

  test('is checked after the intent was written: a slow disk begins nothing late', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      world.disk.delay = () => world.clock.sleep(10_000);
      world.controlPlane.leaseMs = 0;
      await context.begin();
      touch();
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'), 20_000);
    expect(world.session?.operationState('h/1/1/1')).toBe('begun');
    expect(world.touched).toEqual([]);
    world.controlPlane.leaseMs = 5000;
    await world.run(3000);
    expect(world.touched).toEqual(['h/1/1/1']);
  });

  test('outlives its session until it runs out, and no longer', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      await world.clock.sleep(1000);
      await context.begin();
      touch();
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'), 10);
    world.controlPlane.reachable = false;
    world.controlPlane.cut();
    await world.run(2000);
    expect(world.touched).toEqual(['h/1/1/1']);
    await world.run(4000);
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('is not carried from one session into the next', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 100_000;
    await world.run(1000);
    world.controlPlane.leaseMs = 0;
    world.controlPlane.cut();
    await world.run(5000);
    expect(world.session?.status()).toMatchObject({ kind: 'connected' });
    expect(world.session?.isLeaseValid()).toBe(false);
  });

  test('can be shortened by a later renewal, and is never longer than its bound', async () => {
    const world = new World();
    world.limits = { leaseLongestMs: 3000 };
    world.controlPlane.leaseMs = 1_000_000;
    world.controlPlane.heartbeatIntervalMs = 1000;
    await world.bootAndConnect();
    world.controlPlane.leaseMs = 1;
    await world.run(1100);
    expect(world.session?.isLeaseValid()).toBe(false);
    expect(world.session?.leaseLeftMs()).toBe(0);
    world.controlPlane.leaseMs = 1_000_000;
    await world.run(1000);
    world.controlPlane.leaseMs = 0;
    expect(world.session?.isLeaseValid()).toBe(true);
    expect(world.session?.leaseLeftMs()).toBeGreaterThan(0);
    expect(world.session?.leaseLeftMs()).toBeLessThanOrEqual(3000);
    await world.run(3000);
    expect(world.session?.isLeaseValid()).toBe(false);
  });
});
