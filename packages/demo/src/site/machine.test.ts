import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { planFleet } from '../fleet.ts';
import { parseOptions } from '../options.ts';
import { loopback, networkOf } from './configuration.ts';
import {
  bmcPassword,
  bmcUser,
  type HousedMachine,
  houseMachine,
  setFault,
  slowWrites,
} from './machine.ts';

let folder: string;
const housed: HousedMachine[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-demo-machine-'));
});
afterEach(async () => {
  for (const { bmc } of housed.splice(0)) await bmc.close();
  rmSync(folder, { recursive: true, force: true });
});

async function house(name: string): Promise<HousedMachine> {
  const parsed = parseOptions([]);
  if (parsed.kind !== 'run') throw new Error('these arguments are right');
  const plan = planFleet(parsed.options).machines.find((machine) => machine.name === name);
  if (plan === undefined) throw new Error(`there is no machine ${name}`);
  const ports = { dhcp: 1, client: 2, pxe: 3, tftp: 4, http: 5, runner: 6, metrics: 7 };
  const machine = await houseMachine(folder, plan, networkOf(ports));
  housed.push(machine);
  return machine;
}

/** Status of a question with the password that every BMC of the demo takes. */
async function statusOf({ bmc }: HousedMachine): Promise<number | undefined> {
  return await new Promise((resolve, reject) => {
    const auth = `${bmcUser}:${bmcPassword}`;
    // The certificate is the BMC's own; whom we speak to is not the question here.
    const options = { host: loopback, port: bmc.port, auth, rejectUnauthorized: false };
    request({ ...options, path: '/redfish/v1/Systems' }, (response) => {
      response.resume();
      resolve(response.statusCode);
    })
      .on('error', reject)
      .end();
  });
}

test('a BMC with the fault wrong-password takes its password no longer, until mended', async () => {
  const machine = await house('h1');
  expect(await statusOf(machine)).toBe(200);
  setFault(machine, 'wrong-password');
  expect(await statusOf(machine)).toBe(401);
  setFault(machine, 'none');
  expect(await statusOf(machine)).toBe(200);
});

test('writes are slowed from what they were at first, and only in time', async () => {
  const machine = await house('h1');
  const path = join(machine.folder, 'disks', 'vda.json');
  const faults = () => (JSON.parse(readFileSync(path, 'utf8')) as { faults: object[] }).faults;
  const [before] = faults();
  for (const factor of [4, 16, 1]) {
    slowWrites(machine, factor);
    expect(faults()).toEqual([{ ...before, delayMs: 60 * factor }]);
  }
  expect(faults()).toEqual([before]);
});

test('a machine planned with a wrong password has a BMC in order', async () => {
  expect(await statusOf(await house('wrong-password'))).toBe(200);
});
