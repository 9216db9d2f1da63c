/**
 * The requirements of every BmcDriver, as cases that run against a rig: a BMC whose own side can be
 * looked at. The same cases run against real ipmitool with ipmi_sim, against the imitation of
 * ipmitool, and against drivers broken on purpose, on which the named cases must be red.
 */
import assert from 'node:assert/strict';
import type { BmcDriver, BmcIdentity, BmcResult, BootDevice, PowerState } from '../driver.ts';

/**
 * The device's own side: the commands that it got and its state. Never asked through the driver.
 */
export interface DeviceSide {
  readonly power: PowerState;
  readonly bootDevice: BootDevice;
  /** How often power was switched since the rig was made. */
  readonly switches: number;
  /** How often its system was asked to shut down; undefined: it cannot be seen. */
  readonly softOffs: number | undefined;
}

export interface BmcRig {
  /** A BMC that works, powered off, without an override. */
  readonly honest: BmcDriver;
  /** The same BMC with a password that it does not know. */
  readonly wrongPassword: BmcDriver;
  /** Nothing answers at this address. */
  readonly silent: BmcDriver;
  /** Accepts every command, carries out none; powered off. */
  readonly lying: BmcDriver;
  /** Shows a power change only some polls later. */
  readonly slow: BmcDriver;
  readonly identity: BmcIdentity;
  /** Abilities that its devices lack: the driver reports that, and does nothing. */
  readonly lacks?: ReadonlySet<'bootOverride' | 'softOff'>;
  readonly password: string;
  /** The device behind `honest`. */
  device(): Promise<DeviceSide>;
  /** Real milliseconds or the rig's own; only differences are used. */
  nowMs(): number;
  close(): Promise<void>;
}

export interface ConformanceCase {
  readonly name: string;
  run(rig: BmcRig): Promise<void>;
}

/** A silent BMC must be given up within this, spacing and retries included. */
const silenceBoundMs = 30_000;

export const bmcConformance: readonly ConformanceCase[] = [
  {
    name: 'reads the identity that the BMC has',
    async run({ honest, identity }) {
      assert.deepEqual(value(await honest.readIdentity()), identity);
    },
  },
  {
    name: 'reads the power state that the device has',
    async run(rig) {
      assert.equal(value(await rig.honest.powerState()), (await rig.device()).power);
    },
  },
  {
    name: 'switches on and off, and the device is switched when it says so',
    async run(rig) {
      for (const state of ['on', 'off'] as const) {
        const { changed } = value(await rig.honest.setPower(state));
        assert.equal(changed, true);
        assert.equal((await rig.device()).power, state);
        assert.equal(value(await rig.honest.powerState()), state);
      }
    },
  },
  {
    name: 'switches nothing when the asserted state holds',
    async run(rig) {
      const { changed } = value(await rig.honest.setPower('off'));
      assert.equal(changed, false);
      assert.equal((await rig.device()).switches, 0);
    },
  },
  ...(['network', 'disk', 'cd', 'none'] as const).map(
    (device): ConformanceCase => ({
      name: `sets the boot override to ${device}`,
      async run(rig) {
        if (rig.lacks?.has('bootOverride') === true) {
          assert.equal(rig.honest.setBootOverride, undefined);
          return;
        }
        const before = device === 'network' ? 'disk' : 'network';
        value(await override(rig.honest, before));
        value(await override(rig.honest, device));
        assert.equal((await rig.device()).bootDevice, device);
      },
    }),
  ),
  {
    name: 'calls a wrong password an authentication failure',
    async run({ wrongPassword }) {
      for (const result of await everyCall(wrongPassword)) {
        assert.equal(result.kind === 'failed' ? result.type : result.kind, 'authentication');
      }
    },
  },
  {
    name: 'calls a silent BMC unreachable, within its bound',
    async run({ silent, nowMs }) {
      const startedMs = nowMs();
      const result = await silent.powerState();
      assert.equal(result.kind === 'transient' ? result.reason : result.kind, 'unreachable');
      assert.ok(nowMs() - startedMs <= silenceBoundMs);
    },
  },
  {
    name: 'calls power that did not change not applied',
    async run({ lying }) {
      const result = await lying.setPower('on');
      assert.equal(result.kind === 'failed' ? result.type : result.kind, 'notApplied');
    },
  },
  {
    name: 'calls a boot override that was not kept not applied',
    async run({ lying, lacks }) {
      if (lacks?.has('bootOverride') === true) return;
      const result = await override(lying, 'network');
      assert.equal(result.kind === 'failed' ? result.type : result.kind, 'notApplied');
    },
  },
  {
    name: 'waits for a BMC that shows a change late',
    async run({ slow }) {
      assert.equal(value(await slow.setPower('on')).changed, true);
    },
  },
  {
    name: 'asks a running system to shut down, once, and switches nothing itself',
    async run(rig) {
      value(await rig.honest.setPower('on'));
      const { switches } = await rig.device();
      const isKnown = rig.lacks?.has('softOff') !== true;
      const softOff = await rig.honest.softOff();
      if (isKnown) assert.deepEqual(value(softOff), { wasRequested: true });
      else assert.equal(softOff.kind === 'failed' ? softOff.type : softOff.kind, 'unsupported');
      const { softOffs = isKnown ? 1 : 0, ...after } = await rig.device();
      assert.equal(softOffs, isKnown ? 1 : 0);
      assert.equal(after.switches, switches);
    },
  },
  {
    name: 'asks nothing of a machine that is off, and does not switch it on',
    async run(rig) {
      assert.deepEqual(value(await rig.honest.softOff()), { wasRequested: false });
      const { power, switches, softOffs = 0 } = await rig.device();
      assert.deepEqual({ power, switches, softOffs }, { power: 'off', switches: 0, softOffs: 0 });
    },
  },
  {
    name: 'gives up at once when its caller has',
    async run(rig) {
      const result = await rig.honest.setPower('on', AbortSignal.abort());
      assert.equal(result.kind === 'transient' ? result.reason : result.kind, 'cancelled');
      const softOff = await rig.honest.softOff(AbortSignal.abort());
      assert.equal(softOff.kind === 'transient' ? softOff.reason : softOff.kind, 'cancelled');
      assert.equal((await rig.device()).switches, 0);
    },
  },
  {
    name: 'never shows the password',
    async run(rig) {
      const drivers = [rig.honest, rig.wrongPassword, rig.lying];
      for (const driver of drivers) {
        for (const result of await everyCall(driver)) {
          assert.ok(!JSON.stringify(result).includes(rig.password), 'a result shows the password');
        }
      }
    },
  },
];

async function everyCall(driver: BmcDriver): Promise<readonly BmcResult<unknown>[]> {
  return [
    await driver.powerState(),
    await driver.readIdentity(),
    ...(driver.setBootOverride === undefined ? [] : [await override(driver, 'network')]),
    await driver.setPower('on'),
    await driver.softOff(),
  ];
}

function override(driver: BmcDriver, device: BootDevice): Promise<BmcResult<unknown>> {
  const set = driver.setBootOverride?.({ device, firmware: 'bios' });
  return set ?? assert.fail('the driver has no boot override');
}

function value<T>(result: BmcResult<T>): T {
  if (result.kind !== 'ok') assert.fail(`expected ok, got ${JSON.stringify(result)}`);
  return result.value;
}
