import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { VirtualClock } from './conformance/virtual-clock.ts';
import { type BmcResult, failed, ok, transient } from './driver.ts';
import { Governor, Governors } from './governor.ts';
import { type BmcHealth, defaultGovernorLimits, type GovernorLimits } from './governor-state.ts';

const limits: GovernorLimits = {
  ...defaultGovernorLimits,
  spacingMs: 100,
  queueCallsMax: 4,
  breakerAfterSilentCalls: 2,
  breakerOpenMs: 1_000,
  breakerOpenMsMax: 3_000,
  authenticationFailuresMax: 2,
};

const rest = { restMs: 0 };
const silence = transient('unreachable', 'no answer', 'no session');
const refusal = failed('authentication', 'no');

function setUp(changes: Partial<GovernorLimits> = {}) {
  const clock = new VirtualClock();
  const health: BmcHealth[] = [];
  const governor = new Governor(clock, { ...limits, ...changes }, (seen) => health.push(seen));
  const call = (result: BmcResult<number>, credential = 'c@1') =>
    clock.settle(governor.run(credential, async () => result, rest));
  return { clock, governor, health, call };
}

describe('the governor of a BMC', () => {
  test('takes a BMC that says that it is busy, or failed, for one that answers', async () => {
    for (const reason of ['busy', 'trouble'] as const) {
      const { call, health } = setUp();
      for (let round = 0; round < 5; round += 1) {
        expect(await call(silence)).toEqual(silence);
        expect(await call(transient(reason, '503'))).toMatchObject({ reason });
      }
      expect(health).toEqual([]);
      await call(silence);
      await call(silence);
      expect(health.map(({ kind }) => kind)).toEqual(['silent']);
    }
  });

  test('keeps one call in flight and its spacing, whatever arrives', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ durationMs: fc.nat(500), arrivalMs: fc.nat(2_000) }), {
          minLength: 1,
          maxLength: 4,
        }),
        async (calls) => {
          const { clock, governor } = setUp();
          const spans: { startMs: number; endMs: number }[] = [];
          const runs = calls.map(async ({ durationMs, arrivalMs }) => {
            await new Promise<void>((resolve) => void clock.after(arrivalMs, resolve));
            return governor.run(
              'c@1',
              async () => {
                const startMs = clock.nowMs();
                await new Promise<void>((resolve) => void clock.after(durationMs, resolve));
                spans.push({ startMs, endMs: clock.nowMs() });
                return ok(1);
              },
              rest,
            );
          });
          const results = await clock.settle(Promise.all(runs));
          expect(results.every(({ kind }) => kind === 'ok')).toBe(true);
          for (const [index, span] of spans.entries()) {
            const next = spans[index + 1];
            if (next !== undefined) expect(next.startMs - span.endMs).toBeGreaterThanOrEqual(100);
          }
        },
      ),
    );
  });

  test('informs no caller that a call was given up while the BMC still acts on it', async () => {
    const { clock, governor } = setUp();
    const stop = new AbortController();
    let hasActed = false;
    const told: BmcResult<number>[] = [];
    const call = governor.run(
      'c@1',
      async () => {
        await new Promise<void>((resolve) => void clock.after(500, resolve));
        hasActed = true;
        return ok(7);
      },
      rest,
      stop.signal,
    );
    void call.then((result) => told.push(result));
    const waits = governor.run('c@1', async () => ok(8), rest, stop.signal);
    stop.abort();
    expect(await waits).toMatchObject({ kind: 'transient', reason: 'cancelled' });
    expect([hasActed, told]).toEqual([false, []]);
    expect(await clock.settle(call)).toEqual(ok(7));
    expect(hasActed).toBe(true);
  });

  test.each([
    [undefined, [0, 20, 520, 540]],
    [70, [0, 70, 140, 210]],
  ])('lets a BMC rest as the driver of each call says, or the site: %s', async (spacingMs, at) => {
    const { clock, governor } = setUp({ spacingMs });
    const startedMs: number[] = [];
    const runs = [20, 500, 20, 20].map((restMs) =>
      governor.run('c@1', async () => ok(startedMs.push(clock.nowMs())), { restMs }),
    );
    await clock.settle(Promise.all(runs));
    expect(startedMs).toEqual(at);
  });

  test('refuses more calls than its queue holds', async () => {
    const { clock, governor } = setUp();
    const runs = Array.from({ length: 6 }, () => governor.run('c@1', async () => ok(1), rest));
    const results = await clock.settle(Promise.all(runs));
    const reasons = results.map((result) => (result.kind === 'transient' ? result.reason : 'ok'));
    expect(reasons).toEqual(['ok', 'ok', 'ok', 'ok', 'ok', 'queueFull']);
  });

  test('opens its breaker after silence in a row and says why', async () => {
    const { call, health, clock, governor } = setUp();
    await call(silence);
    await call(silence);
    let asked = false;
    const refused = await governor.run(
      'c@1',
      async () => {
        asked = true;
        return ok(1);
      },
      rest,
    );
    expect(asked).toBe(false);
    expect(refused).toMatchObject({ kind: 'transient', reason: 'breakerOpen' });
    expect(refused).toMatchObject({ message: expect.stringContaining('did not answer 2 calls') });
    expect(health).toMatchObject([{ kind: 'silent' }]);
    clock.after(1_000, () => {});
    clock.step();
    expect(await call(ok(1))).toEqual(ok(1));
    expect(health).toMatchObject([{ kind: 'silent' }, { kind: 'answering' }]);
  });

  test('doubles the breaker time up to its cap while the trials stay silent', async () => {
    const { call, clock } = setUp();
    await call(silence);
    await call(silence);
    const waits: number[] = [];
    for (let trial = 0; trial < 4; trial += 1) {
      const openedMs = clock.nowMs();
      while ((await call(silence)) !== silence) {
        clock.after(100, () => {});
        clock.step();
      }
      waits.push(clock.nowMs() - openedMs);
    }
    expect(waits).toEqual([1_000, 2_000, 3_000, 3_000]);
  });

  test('counts a busy or refusing BMC as answering', async () => {
    const { call, governor } = setUp();
    for (const result of [silence, failed('rejected', 'no'), silence]) await call(result);
    expect(governor.health()).toEqual({ kind: 'answering' });
  });

  test('does not present a refused credential a third time', async () => {
    const { call, governor, health } = setUp();
    await call(refusal);
    await call(refusal);
    let asked = false;
    const third = await governor.run(
      'c@1',
      async () => {
        asked = true;
        return ok(1);
      },
      rest,
    );
    expect(asked).toBe(false);
    expect(third).toMatchObject({ kind: 'failed', type: 'authentication' });
    expect(health).toMatchObject([{ kind: 'lockGuard', credential: 'c@1' }]);
  });

  test('presents a newer version of a refused credential', async () => {
    const { call } = setUp();
    await call(refusal);
    await call(refusal);
    expect(await call(ok(2), 'c@2')).toEqual(ok(2));
    expect(await call(ok(1), 'c@1')).toMatchObject({ type: 'authentication' });
  });

  test('forgets refusals once the credential was accepted', async () => {
    const { call } = setUp();
    for (const result of [refusal, ok(1), refusal]) await call(result);
    expect(await call(ok(1))).toEqual(ok(1));
  });

  test('drops a waiting call whose caller gave up, and goes on with the next', async () => {
    const { clock, governor } = setUp();
    const gaveUp = new AbortController();
    const slow = governor.run(
      'c@1',
      async () => {
        await new Promise<void>((resolve) => void clock.after(50, resolve));
        return ok('slow');
      },
      rest,
    );
    const dropped = governor.run('c@1', async () => ok('dropped'), rest, gaveUp.signal);
    const next = governor.run('c@1', async () => ok('next'), rest);
    gaveUp.abort();
    expect(await dropped).toMatchObject({ kind: 'transient', reason: 'cancelled' });
    expect(await clock.settle(Promise.all([slow, next]))).toEqual([ok('slow'), ok('next')]);
  });

  test('frees its slot when a call throws', async () => {
    const { clock, governor, call } = setUp();
    const thrown = governor.run('c@1', () => Promise.reject(new Error('broken')), rest);
    await expect(clock.settle(thrown)).rejects.toThrow('broken');
    expect(await call(ok(1))).toEqual(ok(1));
  });
});

describe('the governors of a rack', () => {
  test('are one per address', () => {
    const { clock } = setUp();
    const governors = new Governors(() => new Governor(clock, limits, () => {}));
    const first = governors.at('192.0.2.1:623');
    expect(governors.at('192.0.2.1:623')).toBe(first);
    expect(governors.at('192.0.2.2:623')).not.toBe(first);
    governors.forget('192.0.2.1:623');
    expect(governors.at('192.0.2.1:623')).not.toBe(first);
  });

  test('count refusals anew, and say so, once versions name other passwords', async () => {
    const { clock } = setUp();
    const health: BmcHealth['kind'][] = [];
    const governors = new Governors(() => {
      return new Governor(clock, limits, ({ kind }) => health.push(kind));
    });
    const present = (result: BmcResult<number>) =>
      clock.settle(governors.at('192.0.2.1:623').run('c@1', async () => result, rest));
    await present(refusal);
    await present(refusal);
    expect(await present(ok(1))).toMatchObject({ type: 'authentication' });
    governors.startOver();
    expect(health).toEqual(['lockGuard', 'answering']);
    expect(await present(ok(1))).toEqual(ok(1));
  });
});

describe('a look', () => {
  const noWay = { preempt: () => {} };

  test('is refused while an operation waits or is under way', async () => {
    const { clock, governor } = setUp();
    const slow = governor.run(
      'c@1',
      async () => {
        await new Promise<void>((resolve) => void clock.after(1_000, resolve));
        return ok(1);
      },
      rest,
    );
    const look = await clock.settle(governor.run('c@1', async () => ok(2), rest, undefined, noWay));
    expect(look).toMatchObject({ kind: 'transient', reason: 'busy' });
    expect(await clock.settle(slow)).toEqual(ok(1));
    const later = governor.run('c@1', async () => ok(2), rest, undefined, noWay);
    expect(await clock.settle(later)).toEqual(ok(2));
  });

  test('breaks off for an operation, whether it waits or is under way', async () => {
    const { clock, governor } = setUp();
    const abort = new AbortController();
    const look = { preempt: () => abort.abort() };
    const underWay = governor.run(
      'c@1',
      () =>
        new Promise<BmcResult<number>>((resolve) => {
          abort.signal.addEventListener('abort', () => resolve(transient('cancelled', 'no')));
        }),
      rest,
      abort.signal,
      look,
    );
    const waiting = governor.run('c@1', async () => ok(2), rest, abort.signal, look);
    const operation = governor.run('c@1', async () => ok(3), rest);
    expect(await clock.settle(underWay)).toMatchObject({ reason: 'cancelled' });
    expect(await clock.settle(waiting)).toMatchObject({ reason: 'cancelled' });
    expect(await clock.settle(operation)).toEqual(ok(3));
    expect(clock.nowMs()).toBe(100);
  });

  test('does not present a password that was refused once', async () => {
    const { clock, governor, call } = setUp();
    await call(refusal);
    let asked = 0;
    const act = async () => {
      asked += 1;
      return ok(1);
    };
    const look = await clock.settle(governor.run('c@1', act, rest, undefined, noWay));
    expect(look).toMatchObject({ kind: 'failed', type: 'authentication' });
    expect(asked).toBe(0);
    expect(await clock.settle(governor.run('c@2', act, rest, undefined, noWay))).toEqual(ok(1));
  });

  test('a look that is silent does not open the breaker', async () => {
    const { clock, governor, call, health } = setUp();
    for (let n = 0; n < 5; n++) {
      await clock.settle(governor.run('c@1', async () => silence, rest, undefined, noWay));
    }
    expect(health).toEqual([]);
    expect(await call(ok(1))).toEqual(ok(1));
  });
});
