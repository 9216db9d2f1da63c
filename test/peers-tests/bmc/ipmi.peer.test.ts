/** The conformance suite of BmcDriver on real ipmitool and OpenIPMI's ipmi_sim. */
import { spawnSync } from 'node:child_process';
import type { BmcDriver } from '@rackwright/bmc';
import { defaultGovernorLimits, defaultIpmitoolOptions, Governor } from '@rackwright/bmc';
import { type BmcRig, bmcConformance, type DeviceSide } from '@rackwright/bmc/conformance';
import { IpmiDriver } from '@rackwright/bmc/drivers';
import { nodeClock, nodeExec } from '@rackwright/platform/node';
import { describe, expect, test } from 'vitest';
import { peerMissing } from '../../skipped-reporter.ts';
import { type Behaviour, freeUdpPort, type SimulatedBmc, startIpmiSim } from './ipmi-sim.ts';

const missing = [
  ['ipmitool', '-V'],
  ['ipmi_sim', '-v'],
].flatMap(([program = '', flag = '']) =>
  spawnSync(program, [flag], { stdio: 'ignore', timeout: 10_000 }).error === undefined
    ? []
    : [program],
);

const user = 'operator';
const password = 'word-that-hides';
const identity = {
  guidHex: '8f14e45fceea467a9c2b3d0e55aa0f01',
  manufacturerId: 0x1291,
  manufacturer: 'Rackwright',
  product: 'Lab Host',
  serial: 'HOST-0001',
  boardSerial: 'BRD-0001',
  chassisSerial: 'CHS-0001',
};

const clock = nodeClock();
const readBack = { windowMs: 3_000, pollMs: 100 };

function driverAt(port: number, secret: string): BmcDriver {
  const limits = { ...defaultGovernorLimits, spacingMs: 5, authenticationFailuresMax: 100 };
  return new IpmiDriver({
    target: {
      address: '127.0.0.1',
      port,
      cipherSuite: 3,
      user,
      password: secret,
      credential: 'credentials/test@1',
    },
    governor: new Governor(clock, limits, () => {}),
    exec: nodeExec(),
    clock,
    ipmitool: defaultIpmitoolOptions,
    readBack,
    restart: { beginsWithinMs: 1_000, backWithinMs: 10_000, pollMs: 100 },
  });
}

const bootDevices: Readonly<Record<string, DeviceSide['bootDevice']>> = {
  cdrom: 'cd',
  pxe: 'network',
  default: 'disk',
  none: 'none',
};

async function ready(driver: BmcDriver): Promise<BmcDriver> {
  for (let tries = 0; tries < 5; tries += 1) {
    if ((await driver.powerState()).kind === 'ok') return driver;
  }
  throw new Error('ipmi_sim does not answer');
}

async function makeRig(): Promise<BmcRig> {
  const start = (behaviour: Behaviour): Promise<SimulatedBmc> =>
    startIpmiSim({ user, password, guidHex: identity.guidHex, fru: identity, behaviour });
  const [honest, lying, slow] = await Promise.all([
    start({ kind: 'honest' }),
    start({ kind: 'lying' }),
    start({ kind: 'slow', seconds: 1 }),
  ]);
  return {
    honest: await ready(driverAt(honest.port, password)),
    wrongPassword: driverAt(honest.port, 'something else'),
    silent: driverAt(await freeUdpPort(), password),
    lying: await ready(driverAt(lying.port, password)),
    slow: await ready(driverAt(slow.port, password)),
    identity,
    password,
    device: async () => ({
      power: (await honest.read('power'))?.trim() === '1' ? 'on' : 'off',
      bootDevice: bootDevices[(await honest.read('boot'))?.trim() ?? 'none'] ?? 'none',
      switches: ((await honest.read('log')) ?? '').split('\n').length - 1,
      softOffs: ((await honest.read('soft')) ?? '').split('\n').length - 1,
    }),
    nowMs: () => clock.suspendAwareMs(),
    close: async () => {
      await Promise.all([honest, lying, slow].map((bmc) => bmc.close()));
    },
  };
}

test('sensors, log and firmware of ipmi_sim are read; it cannot be restarted', async (context) => {
  if (missing.length > 0) context.skip(`${peerMissing}${missing.join(', ')}: run npm run peers`);
  const rig = await makeRig();
  try {
    const driver = rig.honest;
    expect(await driver.readSensors?.()).toMatchObject({
      value: {
        health: { level: 'ok' },
        sensors: [{ name: 'Temp', kind: 'temperature', reading: 104, health: 'critical' }],
        complete: true,
      },
    });
    expect(await driver.readFirmware?.()).toMatchObject({
      value: { components: [{ version: '9.08' }] },
    });
    expect(await driver.readLog?.(5)).toEqual({
      kind: 'ok',
      value: { entries: [], complete: true },
    });
    expect(await driver.resetBmc()).toMatchObject({ kind: 'failed', type: 'unsupported' });
  } finally {
    await rig.close();
  }
});

describe('IpmiDriver with ipmitool and ipmi_sim', () => {
  for (const { name, run } of bmcConformance) {
    test(name, async (context) => {
      if (missing.length > 0)
        context.skip(`${peerMissing}${missing.join(', ')}: run npm run peers`);
      const rig = await makeRig();
      try {
        await run(rig);
      } finally {
        await rig.close();
      }
    });
  }
});
