import { create } from '@bufbuild/protobuf';
import { agent, InventorySchema, type OperationId, runner } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import { describe, expect, test } from 'vitest';
import { boot, complete, orderOf, settled, setUp } from './dispatcher.fixture.ts';
import { defaultDispatcherLimits } from './dispatcher.ts';

test('an operation that a runner reported without an order can still be ordered', async () => {
  const { context, dispatcher, link, says, setState, told } = setUp();
  setState('unknown');
  const runner = link(['op']);
  dispatcher.attach(runner);
  says(runner, 'op', { kind: 'complete' });
  void dispatcher.run(orderOf(), context);
  await settled();
  expect(told).toEqual(['received op', 'order op runStep']);
});

describe('an order to a runner', () => {
  test('waits for its runner before it begins, and not for ever', async () => {
    const { clock, context, dispatcher, link, session, told } = setUp();
    const run = dispatcher.run(orderOf(), context);
    await settled();
    expect(session.begun).toBe(0);
    const late = dispatcher.run(orderOf(), context);
    expect(await clock.settle(late)).toMatchObject({
      kind: 'transientError',
      cause: 'runnerAway',
    });
    expect(await run).toMatchObject({ kind: 'transientError' });
    dispatcher.attach(link());
    expect(told).toEqual([]);
    expect(session.begun).toBe(0);
  });

  test('an order for a runner that is gone is interrupted; no later boot gets it', async () => {
    const { context, dispatcher, link, session, told } = setUp();
    dispatcher.attach(link());
    const run = dispatcher.run(orderOf({ runnerSession: 'earlier session' }), context);
    expect(await run).toMatchObject({ kind: 'failed', type: 'interrupted' });
    expect([session.begun, told]).toEqual([0, []]);
    void dispatcher.run(orderOf({ runnerSession: 'session' }), context);
    await settled();
    expect(told).toEqual(['order op runStep']);
  });

  test('is sent again under its id after a reconnect, until the runner ends it', async () => {
    const { context, dispatcher, link, says, session, told } = setUp();
    const first = link();
    dispatcher.attach(first);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    expect(session.begun).toBe(1);
    expect(dispatcher.detach(first)).toBe(true);
    const second = link();
    dispatcher.attach(second);
    expect(told).toEqual(['order op runStep', 'order op runStep']);
    says(second, 'op', { kind: 'continuing', step: 's', percent: 40, text: 'half' });
    expect(session.heard).toEqual([{ step: 's', percent: 40, text: 'half', begun: true }]);
    says(second, 'op', complete);
    expect(await run).toEqual(complete);
    dispatcher.noteReportDurable('op');
    expect(told.at(-1)).toBe('received op');
  });

  test('is not sent again when the runner is about to report its end', async () => {
    const { context, dispatcher, link, says, told } = setUp();
    const first = link();
    dispatcher.attach(first);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    dispatcher.detach(first);
    const second = link(['op']);
    dispatcher.attach(second);
    says(second, 'op', complete);
    expect(await run).toEqual(complete);
    expect(told).toEqual(['order op runStep']);
  });

  test('an order that destroys is sent again only under a lease', async () => {
    for (const [options, sentWithoutLease] of [
      [{ destructive: true }, false],
      [{}, false],
      [{ destructive: false }, true],
      [{ destructive: true, mode: agent.StepMode.CHECK }, true],
    ] as const) {
      const { clock, context, dispatcher, link, session, told } = setUp();
      session.lease = false;
      dispatcher.attach(link());
      void dispatcher.resume(orderOf(options), context);
      await settled();
      expect(told.length > 0).toBe(sentWithoutLease);
      if (sentWithoutLease) continue;
      clock.step();
      expect(told).toEqual([]);
      const text = 'waits for the work lease';
      expect(session.heard).toEqual([{ step: 'deploy.erase_devices', text }]);
      session.lease = true;
      clock.step();
      expect(told).toEqual(['order op runStep']);
    }
  });

  test('an order that took time to prepare begins only under a lease of that moment', async () => {
    const { aborter, context, dispatcher, link, session, setState } = setUp();
    const live = link();
    const answers: unknown[] = [];
    const left: unknown[] = [];
    live.send = ({ case: kind, value }) => {
      if (kind !== 'beginAnswer') return;
      answers.push(value.answer);
      left.push(value.grantedForMs);
    };
    const ask = (operationId: OperationId, from = live): unknown => {
      dispatcher.answerBegin(from, create(runner.AskToBeginSchema, { operationId, sequence: 1n }));
      return answers.pop();
    };
    dispatcher.attach(live);
    void dispatcher.run(orderOf({ destructive: true }), context);
    await settled();
    expect(ask('op')).toEqual({ case: 'granted', value: true });
    expect(left).toEqual([9_000n]);
    session.lease = false;
    expect(ask('op')).toEqual({ case: 'wait', value: 'waits for the work lease' });
    session.brake = { text: 'racks/r1 is frozen' };
    expect(ask('op')).toEqual({ case: 'wait', value: 'racks/r1 is frozen' });
    session.lease = true;
    session.dueAtMs = 0;
    expect(ask('op')).toEqual({ case: 'over', value: 'its time is over' });
    session.dueAtMs = Infinity;
    aborter.abort();
    expect(ask('op')).toEqual({ case: 'over', value: 'it is cancelled' });
    // Begun in an earlier life of the agent, and not resumed yet.
    expect(ask('earlier')).toEqual({ case: 'wait', value: 'waits for the agent' });
    setState('ended');
    const over = { case: 'over', value: 'the agent waits for it no more' };
    expect(ask('earlier')).toEqual(over);
    const stranger = link([], 'boot-2');
    stranger.send = live.send;
    expect(ask('op', stranger)).toEqual(over);
  });

  test('is stopped by Cancel and ends with what the runner says of it', async () => {
    const { aborter, context, dispatcher, link, says, told } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    aborter.abort();
    expect(told).toEqual(['order op runStep', 'order op/cancel cancel']);
    const end: FinalResult = { kind: 'failed', type: 'cancelled', message: 'stopped' };
    says(live, 'op', end);
    says(live, 'op/cancel', complete);
    expect(await run).toEqual(end);
  });

  test('an order that the runner never had is over once it has answered Cancel', async () => {
    const { aborter, clock, context, dispatcher, link, says, session, told } = setUp();
    session.lease = false;
    const live = link();
    dispatcher.attach(live);
    const resumed = dispatcher.resume(orderOf({ destructive: true }), context);
    await settled();
    aborter.abort();
    expect(told).toEqual(['order op/cancel cancel']);
    session.lease = true;
    says(live, 'op/cancel', complete);
    expect(await clock.settle(resumed)).toMatchObject({ kind: 'failed', type: 'cancelled' });
    expect(told).not.toContain('order op runStep');
  });

  test('ends at its deadline, after Cancel and a grace', async () => {
    const { clock, context, dispatcher, link, session, told } = setUp();
    session.dueAtMs = 100_000;
    dispatcher.attach(link());
    const run = dispatcher.run(orderOf(), context);
    expect(await clock.settle(run)).toMatchObject({ kind: 'failed', type: 'deadline' });
    expect(told).toEqual(['order op runStep', 'order op/cancel cancel']);
    expect(clock.nowMs()).toBe(100_000 + defaultDispatcherLimits.cancelGraceMs);
  });

  test('never ends by silence alone, and says since when the runner is away', async () => {
    const { clock, context, dispatcher, link, says, session } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    says(live, 'op', { kind: 'continuing', step: 's', percent: 40, text: 'half' });
    dispatcher.detach(live);
    await expect(clock.settle(run)).rejects.toThrow('nothing is due');
    expect(clock.nowMs()).toBe(defaultDispatcherLimits.awayReportAfterMs);
    const away = 'the runner is not connected since 1970-01-01T00:00:00.000Z';
    expect(session.heard.at(-1)).toEqual({
      step: 'deploy.erase_devices',
      text: `${away}; last heard: s 40 % half`,
    });
  });

  test('says nothing of a runner that comes back soon', async () => {
    const { clock, context, dispatcher, link, session } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    dispatcher.detach(live);
    dispatcher.attach(link());
    await expect(clock.settle(run)).rejects.toThrow('nothing is due');
    expect(session.heard).toEqual([]);
  });

  test.each([
    ['netboots', 'noteNetboot', 'the host has netbooted while it was at work'],
    ['is seen off', 'noteOff', 'the host was switched off while it was at work'],
  ] as const)(
    'is interrupted when its host %s while its runner is away',
    async (_text, saw, message) => {
      const { context, dispatcher, link } = setUp();
      const live = link();
      dispatcher.attach(live);
      const run = dispatcher.run(orderOf(), context);
      let over = false;
      void run.then(() => {
        over = true;
      });
      await settled();
      dispatcher[saw]('uid');
      expect(dispatcher.isAway('uid')).toBe(false);
      dispatcher.detach(live);
      expect(dispatcher.isAway('uid')).toBe(true);
      dispatcher[saw]('another');
      await settled();
      expect(over).toBe(false);
      dispatcher[saw]('uid');
      expect(await run).toMatchObject({ kind: 'failed', type: 'interrupted', message });
      expect(dispatcher.isAway('uid')).toBe(false);
    },
  );

  test('is interrupted when its machine is found elsewhere once its runner is gone', async () => {
    const { clock, context, dispatcher, link } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    const goneMs = clock.nowMs();
    dispatcher.noteBootedElsewhere('uid', goneMs + 1);
    dispatcher.detach(live);
    dispatcher.noteBootedElsewhere('uid', goneMs);
    dispatcher.noteBootedElsewhere('another', goneMs + 1);
    expect(dispatcher.isAway('uid'), 'none of these is a reason').toBe(true);
    dispatcher.noteBootedElsewhere('uid', goneMs + 1);
    const message = 'its machine has booted anew, from another network card';
    expect(await run).toMatchObject({ kind: 'failed', type: 'interrupted', message });
  });

  test('is interrupted when its boot is over', async () => {
    const { context, dispatcher, link, told } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    dispatcher.detach(live);
    dispatcher.endBoot('another boot', 'x');
    dispatcher.endBoot(boot, 'the host was booted again');
    expect(await run).toMatchObject({ kind: 'failed', type: 'interrupted' });
    expect(await dispatcher.run(orderOf(), context)).toMatchObject({
      kind: 'retryAfter',
      reason: 'invalidState',
      message: expect.stringContaining('the host was booted again'),
    });
    dispatcher.attach(link());
    const later = dispatcher.run(orderOf(), context);
    await settled();
    expect(told.at(-1)).toBe('order op runStep');
    dispatcher.endBoot(boot, 'the test is over');
    await later;
  });

  test('is not ended by the runner of another boot', async () => {
    const { clock, context, dispatcher, link, says } = setUp();
    dispatcher.attach(link());
    const run = dispatcher.run(orderOf(), context);
    await settled();
    const stranger = link([], 'boot-2');
    dispatcher.attach(stranger);
    says(stranger, 'op', complete);
    await expect(clock.settle(run)).rejects.toThrow('nothing is due');
  });

  test('an order with an unusable report fails and says why', async () => {
    const { context, dispatcher, link } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    dispatcher.report(live, create(agent.ReportSchema, { operationId: 'op' }), undefined);
    expect(await run).toMatchObject({
      kind: 'failed',
      type: 'internal',
      detail: expect.stringContaining('missing'),
    });
  });
});

describe('after a restart of the agent', () => {
  test('the report of a runner that was quicker is kept for its operation', async () => {
    const { context, dispatcher, link, says, told } = setUp();
    const live = link(['op']);
    dispatcher.attach(live);
    says(live, 'op', complete);
    expect(told).toEqual([]);
    expect(await dispatcher.resume(orderOf(), context)).toEqual(complete);
    dispatcher.noteReportDurable('op');
    expect(told).toEqual(['received op']);
  });

  test('a runner that stays away leaves the work interrupted', async () => {
    const { clock, context, dispatcher } = setUp();
    expect(await clock.settle(dispatcher.resume(orderOf(), context))).toBe('interrupted');
    expect(clock.nowMs()).toBe(defaultDispatcherLimits.resumeWaitMs);
  });

  test('a freeze ends what the runner never had, and leaves what it is at work on', async () => {
    for (const works of [false, true]) {
      const { clock, context, dispatcher, link, says, session, told } = setUp();
      const brake = { text: 'the rack is frozen' };
      Object.assign(session, { lease: false, brake });
      const live = link();
      dispatcher.attach(live);
      const resumed = dispatcher.resume(orderOf({ destructive: true }), context);
      await settled();
      if (works) says(live, 'op', { kind: 'continuing', step: 's', text: 't', percent: 4 });
      for (let round = 0; round < 60 && clock.nowMs() < 60_000; round += 1) clock.step();
      expect(told.includes('order op/cancel cancel')).toBe(!works);
      if (works) continue;
      says(live, 'op/cancel', complete);
      const end = { kind: 'retryAfter', reason: 'frozen', message: 'the rack is frozen' };
      expect(await clock.settle(resumed)).toMatchObject(end);
      expect(told).not.toContain('order op runStep');
    }
  });

  test('a report that the journal has already is only acknowledged', () => {
    for (const state of ['ended', 'unknown', 'received'] as const) {
      const { dispatcher, link, says, setState, told } = setUp();
      setState(state);
      const live = link(['op']);
      dispatcher.attach(live);
      says(live, 'op', complete);
      expect(told).toEqual(['received op']);
    }
  });
});

describe('the links of a boot', () => {
  test('are one: a newer replaces an older, whose end then means nothing', () => {
    const { dispatcher, link, told } = setUp();
    const older = link();
    const newer = link();
    dispatcher.attach(older);
    dispatcher.attach(newer);
    expect(told).toEqual(['closed']);
    expect(dispatcher.detach(older)).toBe(false);
    expect(dispatcher.isLinked(boot)).toBe(true);
    expect(dispatcher.detach(newer)).toBe(true);
    expect(dispatcher.isLinked(boot)).toBe(false);
  });

  test('are cut when their host is forgotten', () => {
    const { dispatcher, link, told } = setUp();
    dispatcher.attach(link());
    dispatcher.forgetHost('another');
    expect(told).toEqual([]);
    dispatcher.forgetHost('uid');
    expect(told).toEqual(['closed']);
  });
});

describe('what a runner says is bounded', () => {
  test('its words are cut, and what they lose is in the detail', async () => {
    const { dispatcher, context, link, says } = setUp();
    const runner = link();
    dispatcher.attach(runner);
    const end = dispatcher.run(orderOf(), context);
    await Promise.resolve();
    const message = `disks: ${'S-1 '.repeat(10_000)}`;
    says(runner, 'op', { kind: 'failed', type: 'notErased', message });
    const result = await end;
    expect(JSON.stringify(result).length).toBeLessThan(6 * 1024);
    expect(result).toMatchObject({ message: expect.stringMatching(/^disks: .*\(cut\)$/) });
  });

  test('an inventory too large to be kept is a failure that says so', async () => {
    const { dispatcher, context, link, says } = setUp();
    const runner = link();
    dispatcher.attach(runner);
    const end = dispatcher.run(orderOf(), context);
    await Promise.resolve();
    const devices = Array.from({ length: 3000 }, () => ({ device: 'sda', model: 'M'.repeat(100) }));
    const inventory = create(InventorySchema, { devices });
    const observations = create(agent.ObservationsSchema, { inventory });
    says(runner, 'op', { kind: 'complete', observations });
    expect(await end).toMatchObject({
      kind: 'failed',
      type: 'unsupported',
      message: expect.stringMatching(/observations has \d+ bytes; at most 262144 can be kept/),
    });
  });
});
