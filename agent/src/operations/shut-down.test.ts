import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  Governor,
} from '@rackwright/bmc';
import {
  type ImitatedBmc,
  imitatedBmc,
  imitatedIpmitool,
  VirtualClock,
} from '@rackwright/bmc/conformance';
import { IpmiDriver } from '@rackwright/bmc/drivers';
import { agent, ShutdownOutcome } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { type ShutDownParts, shutDown, shutdownLeftMs } from './shut-down.ts';

const minuteMs = 60_000;

/** A machine that is on, with a BMC, and `run` to take it down within a minute. */
function setUp(changes: Partial<ImitatedBmc> = {}) {
  const clock = new VirtualClock();
  const bmc = imitatedBmc({ power: 'on', ...changes });
  const driver = new IpmiDriver({
    target: {
      ...{ address: '192.0.2.1', port: 623, cipherSuite: 3 },
      ...{ user: 'u', password: 'imitated', credential: 'c@1' },
    },
    governor: new Governor(clock, defaultGovernorLimits, () => {}),
    exec: imitatedIpmitool(clock, bmc),
    ...{ clock, ipmitool: defaultIpmitoolOptions, readBack: defaultReadBackTimings },
  });
  const abort = new AbortController();
  const told: string[] = [];
  const context = {
    signal: abort.signal,
    reportProgress: ({ text }: { readonly text: string }) => void told.push(text),
  };
  const prove = async () => undefined;
  const run = (leftMs = minuteMs, more: Partial<ShutDownParts> = {}) =>
    clock.settle(shutDown({ driver, clock, context, prove, ...more }, leftMs));
  return { bmc, clock, abort, driver, told, run };
}

test('a system that stops in time is never forced', async () => {
  const { bmc, clock, run, told } = setUp({ stopsAfterMs: 20_000 });
  expect(await run()).toEqual({ kind: 'off', shutdown: ShutdownOutcome.STOPPED });
  expect(bmc).toMatchObject({ power: 'off', switches: 0, softOffs: 1 });
  expect(clock.nowMs()).toBeLessThan(30_000);
  expect(told).toEqual(['the system was asked to shut down']);
});

test('a system that ignores it is forced at the deadline, and not before', async () => {
  const { bmc, clock, run } = setUp({ stopsAfterMs: undefined });
  clock.after(minuteMs - 1, () => expect(bmc).toMatchObject({ power: 'on', switches: 0 }));
  expect(await run()).toEqual({ kind: 'off', shutdown: ShutdownOutcome.FORCED });
  expect(bmc).toMatchObject({ power: 'off', switches: 1, softOffs: 1 });
});

test.each([
  ['unknown', ShutdownOutcome.FORCED_UNSUPPORTED],
  ['refused', ShutdownOutcome.FORCED_REFUSED],
] as const)('if the soft off is %s the host is forced off at once', async (softOff, shutdown) => {
  const { bmc, clock, run } = setUp({ softOff });
  expect(await run()).toEqual({ kind: 'off', shutdown });
  expect(bmc).toMatchObject({ power: 'off', switches: 1 });
  expect(clock.nowMs()).toBeLessThan(10_000);
});

test('a machine that is off is neither asked nor switched', async () => {
  const { bmc, run } = setUp({ power: 'off' });
  expect(await run()).toEqual({ kind: 'off', shutdown: ShutdownOutcome.WAS_OFF });
  expect(bmc).toMatchObject({ power: 'off', switches: 0, softOffs: 0 });
});

test('a machine that comes back on after it stopped is forced off', async () => {
  const { bmc, clock, driver, run } = setUp({ stopsAfterMs: 9_500 });
  const read = driver.powerState.bind(driver);
  driver.powerState = async (signal) => {
    const power = await read(signal);
    // Somebody presses the button, right after it was seen off for the first time.
    if (power.kind === 'ok' && power.value === 'off' && bmc.switches === 0) {
      driver.powerState = read;
      clock.after(1_000, () => {
        bmc.power = 'on';
      });
    }
    return power;
  };
  expect(await run()).toEqual({ kind: 'off', shutdown: ShutdownOutcome.FORCED_CAME_BACK });
  expect(bmc).toMatchObject({ power: 'off', softOffs: 1 });
});

test.each([0, -5_000])('with %i ms left it is forced off without a request', async (leftMs) => {
  const { bmc, run } = setUp();
  expect(await run(leftMs)).toEqual({ kind: 'off', shutdown: ShutdownOutcome.FORCED });
  expect(bmc).toMatchObject({ power: 'off', switches: 1, softOffs: 0 });
});

test('a BMC that is silent for a while ends no wait', async () => {
  const { bmc, clock, run } = setUp({ stopsAfterMs: 30_000 });
  clock.after(3_000, () => {
    bmc.silent = true;
  });
  clock.after(25_000, () => {
    bmc.silent = false;
  });
  expect(await run(10 * minuteMs)).toEqual({ kind: 'off', shutdown: ShutdownOutcome.STOPPED });
  expect(bmc).toMatchObject({ power: 'off', switches: 0, softOffs: 1 });
});

test('a BMC that accepts a command and does not carry it out is reported as such', async () => {
  const { run } = setUp({ lying: true });
  expect(await run()).toMatchObject({ kind: 'failed', type: 'notApplied' });
});

test('a BMC that became another one during the wait gets no command', async () => {
  const { bmc, run } = setUp({ stopsAfterMs: undefined });
  const another = { kind: 'failed', type: 'identityMismatch', message: 'another BMC' } as const;
  expect(await run(minuteMs, { prove: async () => another })).toEqual(another);
  expect(bmc).toMatchObject({ power: 'on', switches: 0 });
});

test('a cancelled wait forces no machine off', async () => {
  const { bmc, clock, abort, run } = setUp({ stopsAfterMs: undefined });
  clock.after(15_000, () => abort.abort());
  expect(await run()).toMatchObject({ kind: 'failed', type: 'cancelled' });
  expect(bmc).toMatchObject({ power: 'on', switches: 0 });
});

test('the time that is left follows no wall clock, and is bounded', () => {
  const left = (deadlineMs: number | undefined, remainingMs: number) => {
    const shutdown =
      deadlineMs === undefined ? {} : { shutdownDeadline: timestampFromMs(deadlineMs) };
    const operation = create(agent.OperationSchema, {
      deadline: timestampFromMs(1_000_000),
      kind: { case: 'setPower', value: { on: false, ...shutdown } },
    });
    return shutdownLeftMs(operation, { remainingMs: () => remainingMs });
  };
  expect(left(undefined, 400_000)).toBeUndefined();
  // Its own deadline is 300 s after that of the shutdown.
  expect(left(700_000, 360_000)).toBe(60_000);
  expect(left(700_000, 299_000)).toBe(-1_000);
  expect(left(700_000, 90_000_000)).toBe(3_600_000);
});
