/** The end of a step's time at the dispatcher: which side stopped it, and how far it was. */
import { describe, expect, test } from 'vitest';
import { complete, orderOf, settled, setUp } from './dispatcher.fixture.ts';
import { defaultDispatcherLimits } from './dispatcher.ts';

const stopped = {
  kind: 'failed',
  type: 'cancelled',
  message: 'stopped',
  detail: 'at 40 %',
} as const;

describe('a step whose time is over', () => {
  /** It is at work when its time is over. */
  async function overdue() {
    const dispatcher = setUp();
    dispatcher.session.dueAtMs = 3_000;
    const live = dispatcher.link();
    dispatcher.dispatcher.attach(live);
    const run = dispatcher.dispatcher.run(orderOf(), dispatcher.context);
    await settled();
    dispatcher.clock.step();
    expect(dispatcher.told.at(-1)).toBe('order op/cancel cancel');
    return { ...dispatcher, live, run };
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
    const { context, dispatcher, link, says, session, clock } = setUp();
    const live = link();
    dispatcher.attach(live);
    const run = dispatcher.run(orderOf(), context);
    await settled();
    session.dueAtMs = clock.suspendAwareMs();
    says(live, 'op', { kind: 'failed', type: 'cancelled', message: 'It wrote nothing.' });
    expect(await run).toMatchObject({ kind: 'failed', type: 'deadline' });
  });
});

describe('a step whose time was over while the agent was away', () => {
  test('has the result that its runner had ready, once that is back', async () => {
    const { clock, context, dispatcher, link, says, session } = setUp();
    session.dueAtMs = clock.suspendAwareMs() - 60_000;
    const resumed = dispatcher.resume(orderOf(), context);
    clock.after(5_000, () => {
      const live = link(['op']);
      dispatcher.attach(live);
      says(live, 'op', complete);
    });
    expect(await clock.settle(resumed)).toEqual(complete);
  });

  test('is interrupted where its runner does not come back soon', async () => {
    const { clock, context, dispatcher, session } = setUp();
    session.dueAtMs = clock.suspendAwareMs() - 60_000;
    expect(await clock.settle(dispatcher.resume(orderOf(), context))).toBe('interrupted');
    expect(clock.nowMs()).toBe(defaultDispatcherLimits.cancelGraceMs);
  });
});
