/** Machines that nobody knows, from the first netboot to a wiped host, with real programs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureType, HostGoal, HostState } from '@rackwright/messages';
import { afterEach, expect, test } from 'vitest';
import { typed } from './command.ts';
import { bmcCommands, diskChanges, type MachinePlan } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;

function plan(n: number): MachinePlan {
  return {
    name: `s${n}`,
    bmcAddress: `127.66.0.${n}`,
    mac: `52:54:00:99:00:0${n}`,
    uuid: `${n}`.repeat(2).padEnd(32, '9a'),
    serial: `NEW-${n}`,
    disks: [{ name: 'vda', serial: `S${n}-DISK`, kind: 'discard' }],
  };
}

let rack: Rack;

afterEach(() => rack.stop());

async function listed() {
  return (await rack.clients.discovery.listDiscoveredMachines({})).discoveredMachines;
}

async function untilListed(count: number) {
  return await eventually(`${count} machines to be listed`, async () => {
    const machines = await listed();
    if (machines.length !== count) throw new Error(`${machines.length} are listed`);
    return machines;
  });
}

function setPolicy(discovery: object) {
  const update = { name: 'racks/r1', spec: { discovery } };
  return rack.clients.racks.updateRack({ rack: update });
}

async function rackwright(...args: string[]): Promise<{ code: number | null; output: string }> {
  const { code, out, err } = await typed(rack.commandEnvironment, args);
  return { code, output: `${out}${err}` };
}

test('a machine that nobody knows gives its inventory, and is wiped once a rule takes it', {
  timeout,
}, async () => {
  rack = await Rack.start({ machines: [], strangers: [plan(1)] });
  const [machine] = rack.strangers;
  if (machine === undefined) throw new Error('no machine');
  const [disk] = machine.plan.disks;
  if (disk === undefined) throw new Error('no disk');
  rack.switchOn(machine);
  await sleep(2_000);
  expect(await listed(), 'nobody takes it in').toEqual([]);
  await setPolicy({ enabled: true });
  const [found] = await untilListed(1);
  expect(found).toMatchObject({
    rack: 'racks/r1',
    bootMac: machine.plan.mac,
    bmcAddress: machine.plan.bmcAddress,
    identifiedBy: 'uuid',
    inventory: { system: { serial: 'NEW-1' }, devices: [{ serial: 'S1-DISK' }] },
  });
  expect(diskChanges(machine, disk), 'only looked at').toEqual([]);
  expect(bmcCommands(machine), 'no BMC was spoken to but by the button').toHaveLength(1);

  const spec = { bmc: { address: '', credential: 'credentials/bmc' }, goal: HostGoal.AVAILABLE };
  const bmcNetworks = [`${machine.plan.bmcAddress}/32`];
  const rules = [{ name: 'all', hostId: 'node-{serial}', spec }];
  await setPolicy({ enabled: true, rules, bmcNetworks });
  const host = await rack.untilHost('node-new-1', 'available', ({ status }) => {
    return status?.state === HostState.AVAILABLE;
  });
  expect(host.spec?.bmc?.address).toBe(machine.plan.bmcAddress);
  expect(host.status?.dirty).toBe(false);
  expect(diskChanges(machine, disk)).not.toEqual([]);
  expect(await listed()).toEqual([]);
});

test('a manifest whose BMC is that of another machine makes a host that nothing is done to', {
  timeout,
}, async () => {
  rack = await Rack.start({ machines: [], strangers: [plan(1), plan(2)] });
  const [first, second] = rack.strangers;
  if (first === undefined || second === undefined) throw new Error('no machines');
  const file = join(rack.folder, 'manifest.csv');
  const header = 'host,rack,serial,mac,bmc,credential';
  const good = `s2,r1,NEW-2,,${second.plan.bmcAddress},bmc`;
  writeFileSync(file, `${header}\ns1,r9,NEW-1,,${second.plan.bmcAddress},bmc\n${good}\n`);
  const refused = await rackwright('expected', 'import', file);
  expect(refused.code).toBe(2);
  expect(refused.output).toContain(`${file}:2: `);
  expect(refused.output).toContain('racks/r9, which does not exist');
  const { expectedHosts } = await rack.clients.discovery.listExpectedHosts({});
  expect(expectedHosts, 'not even the good line').toEqual([]);

  writeFileSync(file, `${header}\ns1,r1,NEW-1,,${second.plan.bmcAddress},bmc\n`);
  const taken = await rackwright('expected', 'import', file);
  expect(taken.output).toContain('1 new, 0 changed');
  await setPolicy({ enabled: true });
  rack.switchOn(first);
  const crossed = await rack.untilHost('s1', 'refused', ({ status }) => {
    return status?.lastError?.failure?.type === FailureType.IDENTITY_MISMATCH;
  });
  expect(crossed.status?.lastError?.failure?.message).toContain(
    'is not that of the machine that was discovered',
  );
  expect(crossed.status?.state).toBe(HostState.NEW);
  expect(crossed.status?.inventory?.system?.serial).toBe('NEW-1');
  const orders = bmcCommands(second).filter((each) => each.startsWith('raw 0x00 0x02'));
  expect(orders, 'the other machine was not switched').toEqual([]);
});

test('a machine found while the control plane is away is reported once when it is back', {
  timeout,
}, async () => {
  rack = await Rack.start({ machines: [], strangers: [plan(1)] });
  const [machine] = rack.strangers;
  if (machine === undefined) throw new Error('no machine');
  await setPolicy({ enabled: true });
  await eventually('the agent to know the policy', () => {
    if (!rack.logs().includes('policy for machines that are no hosts')) throw new Error('not yet');
  });
  await rack.pause('controlplane');
  rack.switchOn(machine);
  await eventually('the machine to be found', () => {
    if (!rack.logs().includes('a machine that is no host was found')) throw new Error('not yet');
  });
  await rack.resume('controlplane');
  const [found] = await untilListed(1);
  await rackwright('discovered', 'delete', found?.name.split('/')[1] ?? '');
  rack.kill('controlplane');
  await sleep(3_000);
  expect(
    await eventually('the control plane', listed),
    'an answered finding is told no more',
  ).toEqual([]);
});
