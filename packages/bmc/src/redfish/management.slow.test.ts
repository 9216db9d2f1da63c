/** Reads and acts beside power and boot, with the simulated BMC over real sockets. */
import { afterEach, describe, expect, test } from 'vitest';
import type { BmcResult } from '../driver.ts';
import { driverFor, readBack, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const sensors = {
  temperatures: [
    { name: 'CPU', reading: 41 },
    { name: 'Inlet', reading: 49, health: 'Critical' },
  ],
  fans: [{ name: 'Fan 1' }],
} as const;

async function start(changes: Parameters<typeof startHost>[0] = {}) {
  const { bmc } = await startHost(changes);
  closers.push(() => bmc.close());
  const restart = { beginsWithinMs: 1_500, backWithinMs: 30_000, pollMs: 50 };
  return { bmc, driver: driverFor(bmc, { parts: { readBack, restart } }) };
}

function value<T>(result: BmcResult<T>): T {
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
  return result.value;
}

describe('sensors', () => {
  test.each(['thermal', 'collection'] as const)(
    'are read where they are: %s',
    async (sensorsIn) => {
      const { driver } = await start({ sensors, habits: { sensorsIn } });
      const read = value(await driver.readSensors());
      expect(read).toMatchObject({ complete: true, health: { level: 'ok', text: '' } });
      expect(
        read.sensors.map(({ name, kind, reading, health }) => [name, kind, reading, health]),
      ).toEqual([
        ['CPU', 'temperature', 41, 'ok'],
        ['Inlet', 'temperature', 49, 'critical'],
        ['Fan 1', 'fan', undefined, 'ok'],
      ]);
    },
  );

  test('come with what the machine is as a whole, and a look at power tells the same', async () => {
    const { driver, bmc } = await start({ sensors, health: 'Critical' });
    expect(value(await driver.readSensors()).health?.level).toBe('critical');
    expect(value(await driver.readPowerAndHealth())).toMatchObject({
      power: 'off',
      health: { level: 'critical' },
    });
    bmc.setHealth('OK');
    expect(value(await driver.readPowerAndHealth()).health).toEqual({ level: 'ok', text: '' });
  });
});

describe('the event log', () => {
  const habits = (['references', 'whole'] as const).flatMap((logEntriesAre) =>
    (['oldest', 'newest'] as const).map((logBeginsWith) => ({ logEntriesAre, logBeginsWith })),
  );
  test.each(habits)('is read from its newest end: %o', async (one) => {
    const { driver } = await start({ logEntries: 90, habits: one });
    const { entries, complete } = value(await driver.readLog(3));
    expect(entries.map(({ id }) => id)).toEqual(['90', '89', '88']);
    expect(entries[0]).toMatchObject({ severity: 'critical', message: 'event 90' });
    expect(complete).toBe(false);
  });

  test('is complete when all of it was read', async () => {
    const { driver } = await start({ logEntries: 2 });
    expect(value(await driver.readLog(50))).toMatchObject({
      complete: true,
      entries: { length: 2 },
    });
  });
});

test('firmware is listed with its versions', async () => {
  const { driver } = await start({ firmware: [{ id: 'BIOS', version: '2.1' }] });
  const { components, complete } = value(await driver.readFirmware());
  expect(complete).toBe(true);
  expect(components.map(({ id, version }) => `${id} ${version}`)).toEqual([
    'BMC 1.0.0',
    'BIOS 2.1',
  ]);
});

describe('the lamp', () => {
  test.each(['LocationIndicatorActive', 'IndicatorLED'] as const)(
    'a lamp by %s is switched on and off',
    async (indicator) => {
      const { driver, bmc } = await start({ habits: { indicator } });
      expect(value(await driver.setIndicator(true))).toEqual({ changed: true, notes: [] });
      expect(bmc.isLit()).toBe(true);
      expect(value(await driver.setIndicator(true)).changed).toBe(false);
      expect(value(await driver.setIndicator(false)).changed).toBe(true);
      expect(bmc.isLit()).toBe(false);
    },
  );

  test('a lamp that stays dark is reported as such, and a missing one as unsupported', async () => {
    const lying = await start({ fault: { kind: 'yesButNothing' } });
    expect(await lying.driver.setIndicator(true)).toMatchObject({ type: 'notApplied' });
    const none = await start({ habits: { indicator: undefined } });
    expect(await none.driver.setIndicator(true)).toMatchObject({ type: 'unsupported' });
  });
});

describe('a restart of the BMC', () => {
  test('is over when the BMC was silent and answers again', async () => {
    const { driver, bmc } = await start({ habits: { restartMs: 500 } });
    expect(value(await driver.resetBmc())).toMatchObject({ changed: true });
    expect(bmc.switches()).toBe(0);
  });

  test.each(['redirect', 'tooManyBytes', 'gatewayTimeout'] as const)(
    'is seen also where %s is the answer',
    async (by) => {
      const fault = { kind: 'answersOddly', by } as const;
      const { driver } = await start({ habits: { restartMs: 500 }, fault });
      expect(value(await driver.resetBmc())).toMatchObject({ changed: true });
    },
  );

  test('a restart that did not happen is reported; a missing one is unsupported', async () => {
    const lying = await start({ fault: { kind: 'yesButNothing' } });
    expect(await lying.driver.resetBmc()).toMatchObject({ type: 'notApplied' });
    const none = await start({ habits: { restartMs: undefined } });
    expect(await none.driver.resetBmc()).toMatchObject({ type: 'unsupported' });
  });
});
