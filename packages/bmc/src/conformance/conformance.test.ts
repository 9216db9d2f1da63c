import { describe, expect, test } from 'vitest';
import { type BmcDriver, failed, ok, transient } from '../driver.ts';
import { type GovernedCalls, Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import { IpmiDriver, ipmiRest } from '../ipmi/driver.ts';
import { defaultIpmitoolOptions } from '../ipmi/options.ts';
import { defaultReadBackTimings } from '../read-back.ts';
import { type ImitatedBmc, imitatedBmc, imitatedIpmitool } from './imitated-ipmitool.ts';
import { type BmcRig, bmcConformance, type DeviceSide } from './suite.ts';
import { VirtualClock } from './virtual-clock.ts';

const password = 'the-word-that-hides';

const fru = [
  ' Chassis Serial        : CHS-1',
  ' Board Serial          : BRD-1',
  ' Product Manufacturer  : Rackwright',
  ' Product Name          : Lab Host',
  ' Product Serial        : HOST-1',
].join('\n');

function imitatedDriver(
  clock: VirtualClock,
  bmc: ImitatedBmc,
  secret = password,
  governor: GovernedCalls = new Governor(clock, defaultGovernorLimits, () => {}),
): BmcDriver {
  return new IpmiDriver({
    target: {
      address: '192.0.2.1',
      port: 623,
      cipherSuite: 3,
      user: 'admin',
      password: secret,
      credential: 'credentials/rack@1',
    },
    governor,
    exec: imitatedIpmitool(clock, bmc),
    clock,
    ipmitool: defaultIpmitoolOptions,
    readBack: defaultReadBackTimings,
  });
}

type Rig = BmcRig & { readonly clock: VirtualClock };

/** A rig around the imitation; `breakIt` may wrap each driver. */
function imitatedRig(breakIt: (driver: BmcDriver) => BmcDriver = (driver) => driver): Rig {
  const clock = new VirtualClock();
  const honestBmc = imitatedBmc({ password, fru });
  const driverOf = (bmc: ImitatedBmc, secret = password): BmcDriver =>
    breakIt(imitatedDriver(clock, bmc, secret));
  const devices = ['none', 'network', 'disk', 'none', 'none', 'cd'] as const;
  return {
    clock,
    honest: driverOf(honestBmc),
    wrongPassword: driverOf(honestBmc, 'another'),
    silent: driverOf(imitatedBmc({ password, silent: true })),
    lying: driverOf(imitatedBmc({ password, lying: true })),
    slow: driverOf(imitatedBmc({ password, powerDelayMs: 11_000 })),
    identity: {
      guidHex: '00112233445566778899aabbccddeeff',
      manufacturerId: 0x2a7c,
      manufacturer: 'Rackwright',
      product: 'Lab Host',
      serial: 'HOST-1',
      boardSerial: 'BRD-1',
      chassisSerial: 'CHS-1',
    },
    password,
    device: async (): Promise<DeviceSide> => ({
      power: honestBmc.power,
      bootDevice: devices[honestBmc.bootFlags[1] >> 2] ?? 'none',
      switches: honestBmc.switches,
      softOffs: honestBmc.softOffs,
    }),
    nowMs: () => clock.nowMs(),
    close: async () => {},
  };
}

describe('IpmiDriver with the imitation of ipmitool', () => {
  for (const { name, run } of bmcConformance) {
    test(name, async () => {
      const rig = imitatedRig();
      await rig.clock.settle(run(rig));
    });
  }
});

describe('IpmiDriver clears an event log', () => {
  const driverOf = (changes: Parameters<typeof imitatedBmc>[0]) => {
    const clock = new VirtualClock();
    const bmc = imitatedBmc({ password, ...changes });
    return { bmc, clock, driver: imitatedDriver(clock, bmc) };
  };

  test.each([
    ['that has entries', { logEntries: 300 }, { kind: 'ok', value: { changed: true } }],
    ['that is empty, which needs no command', { logEntries: 0 }, { value: { changed: false } }],
    ['that stays as it is', { logEntries: 300, lying: true }, { type: 'notApplied' }],
    ['that the BMC does not have', { logEntries: undefined }, { type: 'unsupported' }],
    ['of a silent BMC', { logEntries: 3, silent: true }, { reason: 'unreachable' }],
  ])('the event log %s is cleared, or the driver says why not', async (_, changes, expected) => {
    const { clock, driver } = driverOf(changes);
    expect(await clock.settle(driver.clearEventLog())).toMatchObject(expected);
  });
});

function overrideOf(driver: BmcDriver): NonNullable<BmcDriver['setBootOverride']> {
  return (override, signal) => {
    const set = driver.setBootOverride?.(override, signal);
    if (set === undefined) throw new Error('the driver has no boot override');
    return set;
  };
}

/** A driver of which some methods are replaced. */
function patched(driver: BmcDriver, patch: Partial<BmcDriver>): BmcDriver {
  return {
    readIdentity: (signal) => driver.readIdentity(signal),
    powerState: (signal) => driver.powerState(signal),
    readPowerAndHealth: (signal) => driver.readPowerAndHealth(signal),
    setIndicator: (lit, signal) => driver.setIndicator(lit, signal),
    resetBmc: (signal) => driver.resetBmc(signal),
    setBootOverride: (override, signal) => overrideOf(driver)(override, signal),
    setPower: (state, signal) => driver.setPower(state, signal),
    softOff: (signal) => driver.softOff(signal),
    clearEventLog: (signal) => driver.clearEventLog(signal),
    ...patch,
  };
}

const done = ok({ changed: true, notes: [] });

/** Drivers with one planted fault each, and a case that must catch it. */
const broken: readonly (readonly [string, string, (driver: BmcDriver) => BmcDriver])[] = [
  [
    'trusts the exit code of a power command',
    'calls power that did not change not applied',
    (driver) => patched(driver, { setPower: async () => done }),
  ],
  [
    'trusts the exit code of a boot command',
    'calls a boot override that was not kept not applied',
    (driver) => patched(driver, { setBootOverride: async () => done }),
  ],
  [
    'reports a switch without one',
    'switches nothing when the asserted state holds',
    (driver) => patched(driver, { setPower: async () => done }),
  ],
  [
    'calls silence a failure',
    'calls a silent BMC unreachable, within its bound',
    (driver) => patched(driver, { powerState: async () => failed('rejected', 'no') }),
  ],
  [
    'calls a wrong password transient',
    'calls a wrong password an authentication failure',
    (driver) => patched(driver, { powerState: async () => transient('unreachable', 'no session') }),
  ],
  [
    'prints the password',
    'never shows the password',
    (driver) =>
      patched(driver, { powerState: async () => failed('rejected', `tried ${password}`) }),
  ],
  [
    'confuses disk and network',
    'sets the boot override to disk',
    (driver) =>
      patched(driver, {
        setBootOverride: ({ firmware }) => overrideOf(driver)({ device: 'network', firmware }),
      }),
  ],
  [
    'does not wait',
    'waits for a BMC that shows a change late',
    (driver) =>
      patched(driver, {
        setPower: async (state) => {
          void driver.setPower(state);
          const seen = await driver.powerState();
          return seen.kind === 'ok' && seen.value === state ? done : failed('notApplied', 'no');
        },
      }),
  ],
  [
    'forces off instead of asking',
    'asks a running system to shut down, once, and switches nothing itself',
    (driver) =>
      patched(driver, {
        softOff: async (signal) => {
          const off = await driver.setPower('off', signal);
          return off.kind === 'ok' ? ok({ wasRequested: true }) : off;
        },
      }),
  ],
  [
    'presses the power button of a machine that is off',
    'asks nothing of a machine that is off, and does not switch it on',
    (driver) =>
      patched(driver, {
        softOff: async (signal) => {
          const on = await driver.setPower('on', signal);
          return on.kind === 'ok' ? ok({ wasRequested: true }) : on;
        },
      }),
  ],
  [
    'ignores its signal',
    'gives up at once when its caller has',
    (driver) => patched(driver, { setPower: (state) => driver.setPower(state) }),
  ],
  [
    'makes up an identity',
    'reads the identity that the BMC has',
    (driver) => patched(driver, { readIdentity: async () => ok({ serial: 'HOST-1' }) }),
  ],
];

describe('the conformance suite is red on a driver that', () => {
  for (const [fault, caughtBy, breakIt] of broken) {
    test(fault, async () => {
      const found = bmcConformance.find(({ name }) => name === caughtBy);
      if (found === undefined) throw new Error(`no case is named ${caughtBy}`);
      const rig = imitatedRig(breakIt);
      await expect(rig.clock.settle(found.run(rig))).rejects.toThrow();
    });
  }
});

test('the BMC rests longer after what acts than after what only reads', async () => {
  const clock = new VirtualClock();
  const rests: number[] = [];
  const governor: GovernedCalls = {
    run: (_credential, act, { restMs }) => {
      rests.push(restMs);
      return act();
    },
  };
  const driver = imitatedDriver(clock, imitatedBmc({ password, fru }), password, governor);
  const { read: look, act } = ipmiRest;
  await clock.settle(driver.readIdentity());
  expect(rests.splice(0)).toEqual([look, look, look]);
  await clock.settle(overrideOf(driver)({ device: 'network', firmware: 'bios' }));
  expect(rests.splice(0)).toEqual([act, look]);
  await clock.settle(driver.setPower('on'));
  expect(rests.slice(0, 3)).toEqual([look, act, look]);
  expect(look).toBeLessThan(act);
});
