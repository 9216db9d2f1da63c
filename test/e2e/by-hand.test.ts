/** A host without a BMC: a person switches it, and its own runner says that it is up. */
import {
  BmcProtocol,
  type Host,
  HostGoal,
  HostState,
  hostWaitOf,
  PowerAction,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { startSocketSwitch } from '@rackwright/sim/loopback';
import { SoftwareMachine } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { bmcCommands, bmcPassword, type MachinePlan } from './machines.ts';
import { programOf } from './programs.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.30',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f11',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};

function untilAsked(rack: Rack, message: RegExp): Promise<Host> {
  return rack.untilHost('h1', `to ask a person: ${message}`, ({ status }) => {
    const { waiting } = status?.run ?? {};
    return hostWaitOf(waiting) === 'person' && message.test(waiting?.message ?? '');
  });
}

function untilEnded(rack: Rack, kind: RunKind): Promise<Host> {
  return rack.untilHost('h1', `run of kind ${kind} to end`, ({ status }) => {
    return status?.run?.kind === kind && status.run.phase === RunPhase.ENDED;
  });
}

test('two confirmations and a power button inspect a host without a BMC, also after kills', {
  timeout,
}, async () => {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  const [folder] = rack.machines;
  if (folder === undefined) throw new Error('no machine');
  const system = new SoftwareMachine({ folder: folder.folder, program: programOf('machine') });
  try {
    await rack.untilHost('h1', 'verified', ({ status }) => status?.state === HostState.MANAGEABLE);
    const { hosts } = rack.clients;
    const host = { name, spec: { bmc: { protocol: BmcProtocol.MANUAL } } };
    await hosts.updateHost({ host, updateMask: { paths: ['spec.bmc'] } });
    const verified = await untilEnded(rack, RunKind.VERIFY);
    expect(verified.status?.bmcIdentity).toBeUndefined();
    const told = bmcCommands(folder).length;
    await hosts.inspectHost({ name });
    await untilAsked(rack, /off/);
    rack.kill('controlplane');
    await untilAsked(rack, /off/);
    await hosts.setHostPower({ name, action: PowerAction.CONFIRM_OFF });
    await untilAsked(rack, /boot from the network/);
    const { unblock } = await hosts.explainHost({ name });
    expect(unblock.join()).toContain(machine.mac);
    rack.kill('agent');
    system.powerOn('network');
    const up = await untilAsked(rack, /off/);
    expect(up.status).toMatchObject({ poweredOn: true });
    expect(up.status?.powerWord).toBeUndefined();
    system.powerOff();
    await hosts.setHostPower({ name, action: PowerAction.CONFIRM_OFF });
    const ended = await untilEnded(rack, RunKind.INSPECT);
    expect(ended.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(ended.status?.inventory?.devices).toHaveLength(1);
    expect(ended.status?.powerWord?.by).toMatch(/^user:|^token:|admin/);
    expect(bmcCommands(folder)).toHaveLength(told);
  } finally {
    system.powerOff();
    await rack.stop();
  }
});

test('a host without a BMC is inspected by the socket that a device switches', {
  timeout,
}, async () => {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  const [folder] = rack.machines;
  if (folder === undefined) throw new Error('no machine');
  const system = new SoftwareMachine({ folder: folder.folder, program: programOf('machine') });
  const device = await startSocketSwitch({
    ...{ user: 'admin', password: bmcPassword, plainHttp: true },
    onSwitch: (on) => (on ? system.powerOn('network') : system.powerOff()),
  });
  try {
    await rack.untilHost('h1', 'verified', ({ status }) => status?.state === HostState.MANAGEABLE);
    const { hosts } = rack.clients;
    const { address, port } = device;
    const bmc = {
      ...{ address, port, protocol: BmcProtocol.WEBHOOK, credential: 'credentials/bmc' },
      wakeOnLan: true,
      webhook: {
        ...{ onPath: '/relay/on', offPath: '/relay/off', statePath: '/relay' },
        ...{ stateField: 'relay.on', plainHttp: true },
      },
    };
    const host = { name, spec: { bmc } };
    await hosts.updateHost({ host, updateMask: { paths: ['spec.bmc'] } });
    const verified = await untilEnded(rack, RunKind.VERIFY);
    expect(verified.status).toMatchObject({ poweredOn: false });
    await hosts.inspectHost({ name });
    const ended = await untilEnded(rack, RunKind.INSPECT);
    expect(ended.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(ended.status?.inventory?.devices).toHaveLength(1);
    expect(ended.status?.poweredOn).toBe(false);
    expect([device.switches(), device.isOn()]).toEqual([2, false]);
  } finally {
    system.powerOff();
    await rack.stop();
    await device.close();
  }
});
