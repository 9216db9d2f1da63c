/** R3, R4, R12 and Cancel: an operation from receipt to its answered report. */
import { agent, asRunNumber, deploymentIdOf, RerunClass } from '@rackwright/messages';
import { quietLog as log } from '@rackwright/platform/testing';
import { describe, expect, test } from 'vitest';
import { Journal } from '../journal/index.ts';
import { AttemptEnd } from './executor.ts';
import { notDurable } from './results.ts';
import { AgentSession } from './session.ts';
import { journalPath, snapshotPath, type Work, World } from './testing/world.ts';

/** A test setup whose agent is connected. */
async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

/** Work that begins, and ends when the test ends it or when it is stopped. */
function workUntilReleased(world: World): { release: () => void; aborted: string[] } {
  const aborted: string[] = [];
  const released = Promise.withResolvers<void>();
  world.work = async ({ id }, context, touch) => {
    await context.begin();
    touch();
    const stopped = new Promise<'stopped'>((resolve) => {
      context.signal.addEventListener('abort', () => resolve('stopped'), { once: true });
    });
    if ((await Promise.race([released.promise, stopped])) !== 'stopped')
      return { kind: 'complete' };
    aborted.push(id);
    return { kind: 'failed', type: 'cancelled', message: 'stopped' };
  };
  return { release: released.resolve, aborted };
}

test('the agent runs an operation, records each stage and delivers the result', async () => {
  const world = await connected();
  await world.issue(world.erase('h/1/1/1'));
  expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
  expect(world.touched).toEqual(['h/1/1/1']);
  expect(world.passed).toEqual([
    'agent.journalled',
    'agent.begun',
    'agent.ended',
    'agent.reported',
  ]);
  expect(world.endedHooks).toEqual(['h/1/1/1']);
  expect(world.session?.operationState('h/1/1/1')).toBe('unknown');
});

describe('R3: a known id is answered from the journal', () => {
  test('a known id is never executed again while it runs', async () => {
    const world = await connected();
    const { release } = workUntilReleased(world);
    const operation = world.erase('h/1/1/1');
    await world.issue(operation);
    world.controlPlane.send({ case: 'operation', value: operation });
    await world.run(100);
    expect(world.session?.operationState('h/1/1/1')).toBe('begun');
    release();
    await world.run(100);
    expect(world.touched).toEqual(['h/1/1/1']);
    expect(world.controlPlane.reports).toHaveLength(1);
  });

  test('a known id is not executed after it has ended, nor in a later life', async () => {
    const world = await connected();
    world.controlPlane.settles = false;
    const operation = world.erase('h/1/1/1');
    await world.issue(operation);
    world.controlPlane.send({ case: 'operation', value: operation });
    await world.run(100);
    world.controlPlane.direct = () => agent.Directive_Action.CONTINUE;
    await world.restart();
    world.controlPlane.send({ case: 'operation', value: operation });
    await world.run(100);
    expect(world.touched).toEqual(['h/1/1/1']);
    const results = world.controlPlane.reports.map(({ sequence, result }) => [
      sequence,
      result.case,
    ]);
    expect(results).toEqual([
      [1n, 'complete'],
      [1n, 'complete'],
      [1n, 'complete'],
    ]);
  });

  test('a known id is executed once, though the same operation comes twice at once', async () => {
    const world = await connected();
    const operation = world.erase('h/1/1/1');
    world.controlPlane.issue(operation);
    world.controlPlane.issue(operation);
    await world.run(100);
    expect(world.touched).toEqual(['h/1/1/1']);
  });

  test('starts what was received before a crash only when it is told to continue', async () => {
    const world = await connected();
    world.crashAt = { name: 'agent.journalled', occurrence: 1 };
    await world.issue(world.erase('h/1/1/1'));
    expect(world.alive).toBe(false);
    const { issued } = world.controlPlane;
    const kept = [...issued.values()];
    issued.clear();
    world.controlPlane.direct = () => undefined;
    await world.bootAndConnect();
    expect(world.session?.operationState('h/1/1/1')).toBe('received');
    expect(world.touched).toEqual([]);
    world.controlPlane.direct = () => agent.Directive_Action.CONTINUE;
    for (const each of kept) issued.set(each.operation.id, each);
    await world.restart();
    await world.run(100);
    expect(world.touched).toEqual(['h/1/1/1']);
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
  });

  test('is known by its state before the session has started', async () => {
    const world = await connected();
    workUntilReleased(world);
    await world.issue(world.erase('h/1/1/1'));
    world.kill();
    const { clock } = world.clock.open();
    const { disk } = world.disk.open();
    const { transport } = world.controlPlane.open();
    const note = () => undefined;
    const random = { bytes: (count: number) => new Uint8Array(count), fraction: () => 0 };
    const opening = Journal.open({ disk, path: journalPath, clock, random, log });
    await world.run(10);
    const parts = { journal: await opening, disk, snapshotPath, clock, random, log, transport };
    const session = new AgentSession({ ...parts, crashPoint: note, agentVersion: '0.0.0' });
    expect(session.operationState('h/1/1/1')).toBe('begun');
    expect(session.operationState('h/1/1/2')).toBe('unknown');
  });

  test('cannot answer an operation without an id, and goes on', async () => {
    const world = await connected();
    world.controlPlane.send({ case: 'operation', value: {} });
    await world.issue(world.erase('h/1/1/1'));
    expect(world.touched).toEqual(['h/1/1/1']);
  });
});

describe('R4: no destructive step without a durable intent', () => {
  test('touches nothing when the intent cannot be written, and says why', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      world.disk.failing = true;
      await context.begin();
      touch();
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'));
    expect(world.touched).toEqual([]);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind: 'failed',
      type: 'internal',
      message: expect.stringContaining('not durable'),
    });
  });

  test('does not even accept what it cannot write down', async () => {
    const world = await connected();
    world.disk.failing = true;
    await world.issue(world.erase('h/1/1/1'));
    expect(world.touched).toEqual([]);
    expect(world.passed).not.toContain('agent.journalled');
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'internal' });
  });

  test('the end of a step whose image is not accepted says that no disk was touched', async () => {
    const world = await connected();
    const deployment = { id: deploymentIdOf('h', asRunNumber(1)), hostName: 'h' };
    const write = (id: string) => world.erase(id, { step: 'deploy.write_image', deployment });
    await world.issue(write('h/1/1/1'));
    world.disk.failing = true;
    await world.issue(write('h/1/1/2'));
    await world.issue(world.erase('h/1/1/3'));
    const outcomes = ['h/1/1/1', 'h/1/1/2', 'h/1/1/3'].map((id) => world.controlPlane.outcome(id));
    expect(outcomes).toEqual([
      { kind: 'complete' },
      { ...notDurable(), disksUntouched: true },
      notDurable(),
    ]);
  });

  test('writes a report down later that the disk did not take', async () => {
    const world = await connected();
    world.controlPlane.answers = false;
    world.work = async (_operation, context) => {
      await context.begin();
      world.disk.failing = true;
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'));
    expect(world.endedHooks).toEqual([]);
    world.disk.failing = false;
    world.controlPlane.cut();
    await world.run(5000);
    expect(world.endedHooks).toEqual(['h/1/1/1']);
    world.controlPlane.answers = true;
    await world.restart();
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
  });

  test('counts a report that the control plane has as safe, even if no disk has it', async () => {
    const world = await connected();
    world.work = async () => {
      world.disk.failing = true;
      return { kind: 'complete' };
    };
    await world.issue(world.erase('h/1/1/1'));
    expect(world.passed).not.toContain('agent.ended');
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
    expect(world.endedHooks).toEqual(['h/1/1/1']);
  });

  test('ends what had begun before a crash interrupted, without repeating it', async () => {
    const world = await connected();
    world.crashAt = { name: 'agent.begun', occurrence: 1 };
    await world.issue(world.power('h/1/1/1'));
    await world.bootAndConnect();
    await world.run(100);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind: 'failed',
      type: 'interrupted',
      lastProgress: expect.stringContaining('begun'),
    });
    expect(world.touched).toEqual([]);
    expect(world.controlPlane.hellos[1]?.operations).toMatchObject([
      { operationId: 'h/1/1/1', state: agent.JournalledOperation_State.ENDED, answered: false },
    ]);
  });

  test.each([
    [RerunClass.NEVER_TWICE, 'failed'],
    [RerunClass.CHECK_FIRST, 'failed'],
    [RerunClass.SAFE, 'transientError'],
  ])('asks nobody to try a step of class %i again that has begun', async (rerunClass, kind) => {
    const world = await connected();
    world.work = async (_operation, context) => {
      await context.begin();
      return { kind: 'transientError', cause: 'unreachable', message: 'the BMC fell silent' };
    };
    const operation = world.erase('h/1/1/1');
    if (operation.kind.case === 'runStep') Object.assign(operation.kind.value, { rerunClass });
    await world.issue(operation);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      kind,
      ...(kind === 'failed' ? { type: 'interrupted' } : {}),
      message: expect.stringContaining('the BMC fell silent'),
    });
  });

  test('takes an in-band step up again with the runner that still works on it', async () => {
    const world = await connected();
    const { aborted } = workUntilReleased(world);
    await world.issue(world.erase('h/1/1/1'));
    const runner = Promise.withResolvers<void>();
    const asked: string[] = [];
    world.resume = async ({ id }, context) => {
      asked.push(id);
      await context.begin();
      await runner.promise;
      return { kind: 'complete' };
    };
    await world.restart();
    expect(world.controlPlane.hellos[1]?.operations).toMatchObject([
      { operationId: 'h/1/1/1', state: agent.JournalledOperation_State.BEGUN },
    ]);
    await world.issue(world.erase('h/1/2/1'));
    expect(world.controlPlane.outcome('h/1/2/1')).toMatchObject({ reason: 'locked' });
    runner.resolve();
    await world.run(100);
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
    expect([asked, world.touched, aborted]).toEqual([['h/1/1/1'], ['h/1/1/1'], []]);
  });

  test('ends an in-band step interrupted when its runner does not come back', async () => {
    const world = await connected();
    workUntilReleased(world);
    await world.issue(world.erase('h/1/1/1'));
    world.resume = async () => {
      await world.clock.sleep(500);
      return 'interrupted' as const;
    };
    await world.restart();
    expect(world.controlPlane.outcome('h/1/1/1')).toBeUndefined();
    await world.run(1000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'interrupted' });
  });

  test('reports what a failing executor threw, and its own end as it is', async () => {
    const world = await connected();
    const thrown: unknown[] = [
      new Error('odd'),
      new AttemptEnd({ kind: 'transientError', cause: 'network', message: 'no route' }),
    ];
    world.work = async () => {
      throw thrown.shift();
    };
    await world.issue(world.verify('h/1/1/1'));
    await world.issue(world.verify('h/1/1/2'));
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({
      type: 'internal',
      detail: 'odd',
    });
    expect(world.controlPlane.outcome('h/1/1/2')).toMatchObject({ cause: 'network' });
  });

  test('begins nothing after the deadline', async () => {
    const world = await connected();
    world.work = async (_operation, context, touch) => {
      await world.clock.sleep(200);
      await context.begin();
      touch();
      return { kind: 'complete' };
    };
    const kind = world.erase('h/1/1/1').kind;
    await world.issue(world.operation('h/1/1/1', kind, 100), 1000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'deadline' });
    expect(world.touched).toEqual([]);
  });
});

describe('R12: one exclusive operation for a host', () => {
  test('answers a second one locked while the first may run', async () => {
    const world = await connected();
    const { release } = workUntilReleased(world);
    await world.issue(world.power('h/1/1/1'));
    await world.issue(world.erase('h/1/2/1'));
    expect(world.controlPlane.outcome('h/1/2/1')).toMatchObject({
      kind: 'retryAfter',
      reason: 'locked',
      message: expect.stringContaining('h/1/1/1'),
    });
    expect(world.touched).toEqual(['h/1/1/1']);
    release();
    await world.run(100);
    await world.issue(world.erase('h/1/2/2'));
    expect(world.touched).toEqual(['h/1/1/1', 'h/1/2/2']);
  });

  test('lets other hosts and what is not exclusive run meanwhile', async () => {
    const world = await connected();
    workUntilReleased(world);
    await world.issue(world.power('h/1/1/1'));
    await world.issue(world.verify('h/2/1/1'));
    await world.issue(world.power('g/1/1/1'));
    expect(world.touched).toEqual(['h/1/1/1', 'h/2/1/1', 'g/1/1/1']);
  });

  test('counts one that waits for its restart as one that may run', async () => {
    const world = await connected();
    world.crashAt = { name: 'agent.journalled', occurrence: 1 };
    await world.issue(world.power('h/1/1/1'));
    world.controlPlane.issued.clear();
    world.controlPlane.direct = () => undefined;
    await world.bootAndConnect();
    await world.issue(world.power('h/1/2/1'));
    expect(world.controlPlane.outcome('h/1/2/1')).toMatchObject({ reason: 'locked' });
  });
});

describe('Cancel', () => {
  test('is answered when what it stopped is over, after its report', async () => {
    const world = await connected();
    const { aborted } = workUntilReleased(world);
    await world.issue(world.erase('h/1/1/1'));
    await world.issue(world.cancel('h/1/1/cancel', 'h/1/1/1'));
    expect(aborted).toEqual(['h/1/1/1']);
    const ids = world.controlPlane.reports.map(({ operationId }) => operationId);
    expect(ids).toEqual(['h/1/1/1', 'h/1/1/cancel']);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'cancelled' });
    expect(world.controlPlane.outcome('h/1/1/cancel')).toEqual({ kind: 'complete' });
  });

  test('stops what waits for the lease before it begins', async () => {
    const world = await connected();
    world.controlPlane.leaseMs = 0;
    await world.run(10_000);
    await world.issue(world.erase('h/1/1/1'));
    await world.issue(world.cancel('h/1/1/cancel', 'h/1/1/1'));
    world.controlPlane.leaseMs = 5000;
    await world.run(5000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'cancelled' });
    expect(world.touched).toEqual([]);
  });

  test('a Cancel of something unknown is complete, and the id can never begin later', async () => {
    const world = await connected();
    world.controlPlane.settles = false;
    await world.issue(world.cancel('h/1/1/cancel', 'h/1/1/1'));
    expect(world.controlPlane.outcome('h/1/1/cancel')).toEqual({ kind: 'complete' });
    world.controlPlane.direct = () => agent.Directive_Action.CONTINUE;
    await world.restart();
    await world.issue(world.erase('h/1/1/1'));
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'cancelled' });
    expect(world.touched).toEqual([]);
  });

  test('is taken up again after a crash, before its target can start', async () => {
    const world = await connected();
    const { controlPlane } = world;
    const target = world.erase('h/1/1/1');
    world.crashAt = { name: 'agent.journalled', occurrence: 2 };
    world.work = () => new Promise(() => undefined);
    controlPlane.issue(target);
    await world.issue(world.cancel('h/1/1/cancel', 'h/1/1/1'));
    expect(world.alive).toBe(false);
    await world.bootAndConnect();
    await world.run(100);
    expect(controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'cancelled' });
    expect(controlPlane.outcome('h/1/1/cancel')).toEqual({ kind: 'complete' });
    expect(world.touched).toEqual([]);
  });

  test('says after its deadline that the other still runs', async () => {
    const world = await connected();
    world.work = () => new Promise(() => undefined);
    await world.issue(world.verify('h/1/1/1'));
    const { kind } = world.cancel('h/1/1/cancel', 'h/1/1/1');
    await world.issue(world.operation('h/1/1/cancel', kind, 1000), 2000);
    expect(world.controlPlane.outcome('h/1/1/cancel')).toMatchObject({
      kind: 'retryAfter',
      reason: 'locked',
    });
  });
});

test('progress is reported while an operation runs, to the next session too', async () => {
  const world = await connected();
  const work: Work = async (_operation, context) => {
    await context.begin();
    context.reportProgress({ step: 'deploy.erase_devices', percent: 40, text: 'overwriting' });
    await world.clock.sleep(20_000);
    return { kind: 'complete' };
  };
  world.work = work;
  await world.issue(world.erase('h/1/1/1'));
  world.controlPlane.cut();
  await world.run(5000);
  const progress = world.controlPlane.facts.map(({ sequence, result }) => [sequence, result.case]);
  expect(progress).toEqual([
    [0n, 'continuing'],
    [0n, 'continuing'],
  ]);
  await world.run(20_000);
  world.controlPlane.cut();
  await world.run(5000);
  expect(world.controlPlane.facts).toHaveLength(2);
});

test('an operation whose report is too large to deliver ends as failed', async () => {
  const world = new World();
  world.limits = { reportBytesMax: 1000 };
  await world.bootAndConnect();
  world.work = async () => ({
    kind: 'failed',
    type: 'ioError',
    message: 'x',
    detail: 'y'.repeat(2000),
  });
  await world.issue(world.verify('h/1/1/1'));
  expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'internal' });
});

test('operations beyond the limit are refused, and none is forgotten', async () => {
  const world = new World();
  world.limits = { operationsMax: 2 };
  await world.bootAndConnect();
  world.controlPlane.settles = false;
  await world.issue(world.verify('h/1/1/1'));
  await world.issue(world.verify('h/1/1/2'));
  await world.issue(world.verify('h/1/1/3'));
  expect(world.controlPlane.outcome('h/1/1/3')).toMatchObject({ reason: 'fault' });
  expect(world.touched).toEqual(['h/1/1/1', 'h/1/1/2']);
});

test('a failure message is cut before it is written', async () => {
  const world = await connected();
  world.work = async () => ({
    kind: 'failed',
    type: 'internal',
    message: 'm'.repeat(100_000),
    detail: '€'.repeat(100_000),
  });
  await world.issue(world.power('h/1/1/1'));
  const outcome = world.controlPlane.outcome('h/1/1/1');
  expect(outcome).toMatchObject({
    kind: 'failed',
    message: expect.stringMatching(/^m+ … \(cut\)$/),
  });
  expect(new TextEncoder().encode(JSON.stringify(outcome)).length).toBeLessThan(6 * 1024);
});
