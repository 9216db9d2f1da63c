import type { ExecRequest, NameAnswer } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { VirtualClock } from '../conformance/virtual-clock.ts';
import { Governor } from '../governor.ts';
import { defaultGovernorLimits } from '../governor-state.ts';
import { defaultReadBackTimings } from '../read-back.ts';
import { IpmiDriver } from './driver.ts';
import { defaultIpmitoolOptions } from './options.ts';

function driverAt(address: string, answer?: NameAnswer) {
  const clock = new VirtualClock();
  const told: string[] = [];
  const run = async ({ args }: ExecRequest) => {
    told.push(args[args.indexOf('-H') + 1] ?? '');
    return { kind: 'exited', code: 0, stdout: ' 01 00 00 00', stderr: '' } as const;
  };
  const credential = 'credentials/rack@1';
  const driver = new IpmiDriver({
    target: { address, port: 623, cipherSuite: 3, user: 'admin', password: 'x', credential },
    governor: new Governor(clock, defaultGovernorLimits, () => {}),
    ...{ exec: { run }, clock, ipmitool: defaultIpmitoolOptions },
    readBack: defaultReadBackTimings,
    ...(answer === undefined ? {} : { names: { addressOf: async () => answer } }),
  });
  return { driver, told };
}

test('ipmitool is told the address that a name was judged by, never the name', async () => {
  const { driver, told } = driverAt('bmc.example', { kind: 'found', address: '192.0.2.7' });
  expect(await driver.powerState()).toMatchObject({ kind: 'ok' });
  expect(told).toEqual(['192.0.2.7']);
});

test.each<NameAnswer | undefined>([
  { kind: 'forbidden', message: 'bmc.example is at 127.0.0.1' },
  { kind: 'unknown', message: 'ENOTFOUND' },
  undefined,
])('a name that leads nowhere is not asked: %j', async (answer) => {
  const { driver, told } = driverAt('bmc.example', answer);
  expect(await driver.powerState()).toMatchObject({ kind: 'failed', type: 'address' });
  expect(told).toEqual([]);
});

test('an address is asked as it stands', async () => {
  const { driver, told } = driverAt('192.0.2.9');
  await driver.powerState();
  expect(told).toEqual(['192.0.2.9']);
});
