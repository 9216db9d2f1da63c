/** The end of a step's time at the desk: which side stopped it, and how far it was. */
import { describe, expect, test } from 'vitest';
import { complete, orderOf, settled, setUp } from './desk.fixture.ts';
import { defaultDeskLimits } from './desk.ts';

const stopped = {
  kind: 'failed',
  type: 'cancelled',
  message: 'stopped',
  detail: 'at 40 %',
} as const;

describe('a step whose time is over', () => {
  /** It is at work when its time is over. */
  async function overdue() {
    const desk = setUp();
    desk.session.dueAtMs = 3_000;
    const live = desk.link();
    desk.desk.attach(live);
    const run = desk.desk.run(orderOf(), desk.context);
    await settled();
    desk.clock.step();
    expect(desk.told.at(-1)).toBe('order op/cancel cancel');
    return { ...desk, live, run };
  }

  test('ends by its deadline, in whatever words its runner says that it was stopped', async () => {
    const { live, run, says } = await overdue();
    says(live, 'op', stopped);
    expect(await run).toMatchObject({ kind: 'failed', type: 'deadline', detail: 'at 40 %' });
  });

  test('ends by its deadline where its runner was not at work on it', async () => {
    const { clock, live, run, says } = await overdue();
    says(live, 'op/cancel', complete);
    expect(await clock.settle(run)).toMatchObject({ kind: 'failed', type: 'deadline' });
  });

  test('keeps an end of its own', async () => {
    const { live, run, says } = await overdue();
    says(live, 'op', complete);
    expect(await run).toEqual(complete);
  });

  test('ends cancelled where a person stopped it', async () => {
    const { aborter, live, run, says } = await overdue();
    aborter.abort();
    says(live, 'op', stopped);
    expect(await run).toEqual(stopped);
  });

  test('ends by its deadline where it was refused to begin for it', async () => {
    const { context, desk, link, says, session, clock } = setUp();
    const live = link();
    desk.attach(live);
    const run = desk.run(orderOf(), context);
    await settled();
    session.dueAtMs = clock.suspendAwareMs();
    says(live, 'op', { kind: 'failed', type: 'cancelled', message: 'It wrote nothing.' });
    expect(await run).toMatchObject({ kind: 'failed', type: 'deadline' });
  });
});

describe('a step whose time was over while the agent was away', () => {
  test('has the result that its runner had ready, once that is back', async () => {
    const { clock, context, desk, link, says, session } = setUp();
    session.dueAtMs = clock.suspendAwareMs() - 60_000;
    const resumed = desk.resume(orderOf(), context);
    clock.after(5_000, () => {
      const live = link(['op']);
      desk.attach(live);
      says(live, 'op', complete);
    });
    expect(await clock.settle(resumed)).toEqual(complete);
  });

  test('is interrupted where its runner does not come back soon', async () => {
    const { clock, context, desk, session } = setUp();
    session.dueAtMs = clock.suspendAwareMs() - 60_000;
    expect(await clock.settle(desk.resume(orderOf(), context))).toBe('interrupted');
    expect(clock.nowMs()).toBe(defaultDeskLimits.cancelGraceMs);
  });
});
