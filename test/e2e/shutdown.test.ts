/** A system that runs is asked to shut down, and is forced off when its time is over. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  BmcProtocol,
  type Host,
  HostGoal,
  HostState,
  PowerAction,
  RunKind,
  RunOutcome,
  RunPhase,
  type Shutdown,
  ShutdownOutcome,
} from '@rackwright/messages';
import { SoftwareMachine } from '@rackwright/sim/machine';
import { startRedfishBmc } from '@rackwright/sim/redfish';
import { expect, test } from 'vitest';
import { bmcCommands, bmcPassword, type MachineFolder, type MachinePlan } from './machines.ts';
import { programOf } from './programs.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.29',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};
const softOff = 'raw 0x00 0x02 0x05';
const powerOff = 'raw 0x00 0x02 0x00';

/** A rack with one host in use, whose system ignores a soft off where it is reached by IPMI. */
async function startRack(): Promise<Rack> {
  const rack = await Rack.start({
    machines: [machine],
    goal: HostGoal.MANAGEABLE,
    prepareMachine: ({ folder }) => writeFileSync(join(folder, 'manners'), 'ignores'),
  });
  await rack.untilHost('h1', 'verified', ({ status }) => status?.state === HostState.MANAGEABLE);
  const { hosts } = rack.clients;
  await hosts.adoptHost({ name, to: HostState.PROVISIONED, reason: 'runs already' });
  await untilEnded(rack, RunKind.ADOPT);
  return rack;
}

async function untilEnded(rack: Rack, kind: RunKind): Promise<Host> {
  const host = await rack.untilHost('h1', `run of kind ${kind} to end`, ({ status }) => {
    return status?.run?.kind === kind && status.run.phase === RunPhase.ENDED;
  });
  expect(host.status?.run?.error?.message).toBeUndefined();
  expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
  return host;
}

function shutdownOf({ status }: Host): Shutdown {
  const shutdown = status?.run?.steps[0]?.shutdown;
  if (shutdown === undefined) throw new Error('nobody was asked to shut down');
  return shutdown;
}

function deadlineMs(host: Host): number {
  const { deadline } = shutdownOf(host);
  return deadline === undefined ? Number.NaN : timestampMs(deadline);
}

/** Wall time at which a BMC is told to take the power, for the first time from now on. */
function forcedAtMs(machine: MachineFolder): Promise<number> {
  const before = asks(bmcCommands(machine), powerOff);
  return eventually('the system to be forced off', () => {
    expect(asks(bmcCommands(machine), powerOff)).toBeGreaterThan(before);
    return Date.now();
  });
}

const asks = (commands: readonly string[], command: string) =>
  commands.filter((each) => each === command).length;

test('a system that ignores the request is forced off at the deadline, whoever is killed', {
  timeout,
}, async () => {
  const rack = await startRack();
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    rack.switchOn(folder);
    const asked = { shutdown: { timeoutSeconds: 25 } };
    await rack.clients.hosts.setHostPower({ name, action: PowerAction.OFF, ...asked });
    await eventually('the system to be asked', () => {
      expect(bmcCommands(folder)).toContain(softOff);
    });
    const waiting = await rack.clients.hosts.getHost({ name });
    const told = await rack.clients.hosts.explainHost({ name });
    expect(told.causes.map(({ text }) => text).join()).toMatch(/^waits for the system to shut/);
    const forced = forcedAtMs(folder);
    rack.kill('agent');
    await sleep(4_000);
    rack.kill('controlplane');
    await sleep(4_000);
    rack.kill('agent', 'controlplane');
    const ended = await untilEnded(rack, RunKind.POWER);
    expect(deadlineMs(ended)).toBe(deadlineMs(waiting));
    expect(await forced).toBeGreaterThanOrEqual(deadlineMs(waiting));
    expect(shutdownOf(ended).outcome).toBe(ShutdownOutcome.FORCED);
    expect(ended.status?.poweredOn).toBe(false);
    expect(ended.status?.run?.steps[0]?.attempt).toBeGreaterThan(1);
  } finally {
    await rack.stop();
  }
});

test('a person ends the wait, and the system is forced off at once', { timeout }, async () => {
  const rack = await startRack();
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    rack.switchOn(folder);
    const { hosts } = rack.clients;
    await hosts.setHostPower({ name, action: PowerAction.OFF });
    await eventually('the system to be asked', () => {
      expect(bmcCommands(folder)).toContain(softOff);
    });
    const startMs = Date.now();
    await hosts.setHostPower({ name, action: PowerAction.SKIP_WAIT });
    const ended = await untilEnded(rack, RunKind.POWER);
    expect(shutdownOf(ended).outcome).toBe(ShutdownOutcome.FORCED);
    expect(deadlineMs(ended) - startMs).toBeLessThan(60_000);
    expect(asks(bmcCommands(folder), softOff)).toBe(1);
  } finally {
    await rack.stop();
  }
});

test('a system that stops in time is not forced, by Redfish', { timeout }, async () => {
  const rack = await startRack();
  const folder = rack.machines[0]?.folder ?? '';
  const system = new SoftwareMachine({ folder, program: programOf('machine') });
  const uuid = machine.uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const bmc = await startRedfishBmc({
    user: 'admin',
    password: bmcPassword,
    identity: { uuid, serial: machine.serial, manufacturer: 'Software', model: 'Machine' },
    machine: {
      powerOn: ({ device }) => system.powerOn(device === 'pxe' ? 'network' : 'disk'),
      powerOff: () => system.powerOff(),
      softOff: () => void setTimeout(() => system.powerOff(), 1_500),
      isOn: () => system.isOn(),
    },
    habits: { powerDelayMs: [50, 200], mode: 'Legacy', bootTargets: ['None', 'Pxe', 'Hdd'] },
  });
  try {
    const { hosts } = rack.clients;
    const { address, port } = bmc;
    const at = { address, port, protocol: BmcProtocol.REDFISH, credential: 'credentials/bmc' };
    const host = { name, spec: { bmc: at } };
    await hosts.updateHost({ host, updateMask: { paths: ['spec.bmc'] } });
    await untilEnded(rack, RunKind.VERIFY);
    system.powerOn('disk');
    const switches = bmc.switches();
    await hosts.releaseHost({ name, reason: 'back to the others' });
    const ended = await untilEnded(rack, RunKind.RELEASE);
    expect(shutdownOf(ended).outcome).toBe(ShutdownOutcome.STOPPED);
    expect([bmc.softOffs(), bmc.switches()]).toEqual([1, switches]);
    expect(system.isOn()).toBe(false);
  } finally {
    system.powerOff();
    await rack.stop();
    await bmc.close();
  }
});
