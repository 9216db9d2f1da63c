/** What is asked of a host in use: a service, rescue, a release; and of one of someone else. */
import {
  type Host,
  HostGoal,
  HostState,
  PowerAction,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import type { DiskPlan } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import {
  bmcCommands,
  diskChanges,
  type MachineFolder,
  type MachinePlan,
  runnerStarts,
} from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';
const disk: DiskPlan = { name: 'vda', serial: 'DISK-1', kind: 'overwrite', faults: [] };
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.23',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [disk],
};

async function withRack(body: (rack: Rack, folder: MachineFolder) => Promise<void>) {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    await untilEnded(rack, RunKind.VERIFY);
    await body(rack, folder);
  } finally {
    await rack.stop();
  }
}

/** The host once its last run is of this kind and has succeeded. */
async function untilEnded(rack: Rack, kind: RunKind): Promise<Host> {
  const host = await rack.untilHost('h1', `run of kind ${kind} to end`, ({ status }) => {
    return status?.run?.kind === kind && status.run.phase === RunPhase.ENDED;
  });
  expect(host.status?.run?.error?.message).toBeUndefined();
  expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
  return host;
}

test('a host in use is serviced, rescued, started again and given back', { timeout }, () =>
  withRack(async (rack, folder) => {
    const { hosts } = rack.clients;
    await hosts.adoptHost({ name, to: HostState.PROVISIONED, reason: 'runs already' });
    expect((await untilEnded(rack, RunKind.ADOPT)).status?.state).toBe(HostState.PROVISIONED);
    await hosts.claimHost({ name, reason: 'database' });

    await hosts.serviceHost({ name, steps: [{ step: 'management.clear_event_log' }] });
    await untilEnded(rack, RunKind.SERVICE);
    // Asked how many entries its event log has: none, so that there is nothing to clear.
    expect(bmcCommands(folder)).toContain('raw 0x0a 0x40');
    expect(runnerStarts(folder)).toBe(0);

    await hosts.rescueHost({ name, reason: 'lost its root file system' });
    const rescued = await untilEnded(rack, RunKind.RESCUE);
    expect(rescued.status).toMatchObject({ display: 'provisioned, in rescue', poweredOn: true });
    expect(runnerStarts(folder)).toBe(1);

    await hosts.setHostPower({ name, action: PowerAction.RESET });
    const reset = await untilEnded(rack, RunKind.POWER);
    expect(reset.status).toMatchObject({ display: 'provisioned', poweredOn: true });

    await hosts.releaseHost({ name, reason: 'no longer needed' });
    const released = await untilEnded(rack, RunKind.RELEASE);
    expect(released.status).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
    expect(released.status?.claim).toBeUndefined();
    expect(released.status?.poweredOn).toBe(false);
    expect(diskChanges(folder, disk)).toEqual([]);
  }),
);

test('a host in someone else’s care is looked at and nothing else, to its end', { timeout }, () =>
  withRack(async (rack, folder) => {
    const { hosts } = rack.clients;
    await hosts.adoptHost({ name, to: HostState.EXTERNAL, reason: 'theirs' });
    expect((await untilEnded(rack, RunKind.ADOPT)).status?.state).toBe(HostState.EXTERNAL);
    await hosts.deleteHost({ name, reason: 'moved away' });
    await eventually('the host to be gone', async () => {
      expect((await hosts.listHosts({})).hosts).toEqual([]);
    });
    expect(bmcCommands(folder).filter((command) => /power (on|off|cycle)/.test(command))).toEqual(
      [],
    );
    expect(runnerStarts(folder)).toBe(0);
    expect(diskChanges(folder, disk)).toEqual([]);
  }),
);
