import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import { agent } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import { World } from './testing/world.ts';

/** A test setup whose agent is connected. */
async function connected(): Promise<World> {
  const world = new World();
  await world.bootAndConnect();
  return world;
}

describe('deadlines of a control plane whose clock differs', () => {
  const hourMs = 3_600_000;

  /** What a control plane sends whose clock is `behindMs` behind the agent's. */
  function sentBy(world: World, behindMs: number, operation: agent.Operation): agent.Operation {
    const shifted = (time: Timestamp | undefined) =>
      timestampFromMs((time === undefined ? 0 : timestampMs(time)) - behindMs);
    const sendTime = timestampFromMs(world.clock.wallAheadMs + world.clock.nowMs - behindMs);
    return create(agent.OperationSchema, {
      ...operation,
      deadline: shifted(operation.deadline),
      sendTime,
    });
  }

  test.each([hourMs, -hourMs])('count by the time that is left (%i ms behind)', async (behind) => {
    const world = await connected();
    const kind = world.verify('h/1/1/1').kind;
    await world.issue(sentBy(world, behind, world.operation('h/1/1/1', kind, 5000)));
    expect(world.controlPlane.outcome('h/1/1/1')).toEqual({ kind: 'complete' });
    world.work = async (_operation, context) => {
      await world.clock.sleep(5001);
      await context.begin();
      return { kind: 'complete' };
    };
    await world.issue(sentBy(world, behind, world.operation('h/1/2/1', kind, 5000)), 6000);
    expect(world.controlPlane.outcome('h/1/2/1')).toMatchObject({ type: 'deadline' });
  });

  test('are not moved by a step of the clock, and hold across a restart', async () => {
    const world = await connected();
    const left: number[] = [];
    world.work = async (_operation, context) => {
      await context.begin();
      world.clock.wallAheadMs += hourMs;
      left.push(context.remainingMs());
      await world.clock.sleep(hourMs);
      return { kind: 'complete' };
    };
    world.resume = async (_operation, context) => {
      left.push(context.remainingMs());
      return { kind: 'complete' };
    };
    await world.issue(sentBy(world, 10 * hourMs, world.erase('h/1/1/1')));
    world.clock.wallAheadMs -= hourMs;
    await world.restart();
    expect(left).toHaveLength(2);
    for (const leftMs of left) expect(Math.abs(leftMs - hourMs)).toBeLessThan(1000);
  });

  test('give the boot grant its end in the same way', async () => {
    const world = await connected();
    world.work = async (operation, context) => {
      const { kind } = operation;
      const expireTime = kind.case === 'setPower' ? kind.value.grantExpireTime : undefined;
      const expiresAtMs = expireTime === undefined ? 0 : timestampMs(expireTime);
      await context.openGrant({ macs: ['52:54:00:00:00:01'], expiresAtMs });
      return { kind: 'complete' };
    };
    const nowMs = world.clock.wallAheadMs + world.clock.nowMs;
    const grantExpireTime = timestampFromMs(nowMs - 10 * hourMs + 60_000);
    const operation = world.power('h/1/1/1', { on: true, grantExpireTime });
    await world.issue(sentBy(world, 10 * hourMs, operation));
    const grant = world.session?.grants.byOperation('h/1/1/1');
    expect(Math.abs((grant?.expiresAtMs ?? 0) - nowMs - 60_000)).toBeLessThan(1000);
  });

  test('report how long a system may take to shut down in the same way', async () => {
    const world = await connected();
    let apartMs = 0;
    world.work = async ({ kind, deadline }) => {
      const shutdown = kind.case === 'setPower' ? kind.value.shutdownDeadline : undefined;
      if (deadline !== undefined && shutdown !== undefined) {
        apartMs = timestampMs(deadline) - timestampMs(shutdown);
      }
      return { kind: 'complete' };
    };
    const operation = world.power('h/1/1/1', { on: false });
    const { deadline, kind } = operation;
    if (deadline === undefined || kind.case !== 'setPower') throw new Error('no such order');
    kind.value.shutdownDeadline = timestampFromMs(timestampMs(deadline) - 10 * hourMs - 60_000);
    await world.issue(sentBy(world, 10 * hourMs, operation));
    expect(apartMs).toBe(60_000);
  });

  test('a grant knows on both clocks when it was opened, until a restart', async () => {
    const world = await connected();
    world.work = async (_operation, context) => {
      await context.openGrant({ macs: ['52:54:00:00:00:01'], expiresAtMs: 4e12 });
      return { kind: 'complete' };
    };
    await world.issue(world.power('h/1/1/1', { on: true }));
    const opened = world.session?.grants.byOperation('h/1/1/1');
    expect((opened?.openedAtMs ?? 0) - world.clock.wallAheadMs).toBe(opened?.openedSuspendAwareMs);
    await world.restart();
    const after = world.session?.grants.byOperation('h/1/1/1');
    expect(after).toMatchObject({ openedAtMs: opened?.openedAtMs });
    expect(after?.openedSuspendAwareMs).toBeUndefined();
  });
});
