/** Everything that can be lost at once, or lost for good, in the middle of a clean. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Host, HostGoal, HostState, RunOutcome, RunPhase } from '@rackwright/messages';
import { type DiskPlan, diskBytes, holdsPattern, makeDisk } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { bmcPassword, type DiskAct, diskChanges, diskLog, type MachineFolder } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const slow = { kind: 'slow', operation: 'write', delayMs: 50 };
const disk: DiskPlan = { name: 'vda', serial: 'DISK-1', kind: 'overwrite', faults: [slow] };
const nvme: DiskPlan = { name: 'nvme0', serial: 'NVME-1', kind: 'format', faults: [slow] };

interface Scene {
  readonly rack: Rack;
  readonly folder: MachineFolder;
}

/** Runs `body` once the clean writes to the disks. */
async function midClean(disks: DiskPlan[], body: (scene: Scene) => Promise<void>): Promise<void> {
  const machine = {
    name: 'h1',
    bmcAddress: '127.0.0.21',
    mac: '52:54:00:00:00:01',
    uuid: '0102030405060708090a0b0c0d0e0f10',
    serial: 'SN-1',
    disks,
  };
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    await untilVerified(rack);
    await rack.clients.hosts.cleanHost({ name: 'hosts/h1' });
    await eventually('the clean to write to the disk', () => {
      if (!diskLog(folder, disk).some(({ kind }) => kind === 'write')) throw new Error('not yet');
    });
    await body({ rack, folder });
  } finally {
    await rack.stop();
  }
}

function untilVerified(rack: Rack): Promise<Host> {
  return rack.untilHost('h1', 'verified', ({ status }) => {
    return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
  });
}

/** The agent has seen what this store lacks. */
function untilHeldAsRestored(rack: Rack): Promise<Host> {
  return rack.untilHost('h1', 'held as restored', ({ status }) => {
    return status?.holds.some(({ reason }) => reason.startsWith('restored: ')) === true;
  });
}

async function expectClean(
  { rack, folder }: Scene,
  disks: readonly DiskPlan[],
  run = 2n,
): Promise<Host> {
  const host = await rack.untilHost('h1', 'cleaned', ({ status }) => {
    return status?.run?.number === run && status.run.phase === RunPhase.ENDED;
  });
  const { status } = host;
  expect(status?.run?.outcome, status?.run?.error?.message ?? '').toBe(RunOutcome.SUCCEEDED);
  expect(status?.dirty).toBe(false);
  expect(status?.lastCleaned?.certificates).toHaveLength(disks.length);
  for (const each of disks) expect(holdsPattern(folder.folder, each)).toBe(false);
  return host;
}

function killRunner({ folder }: MachineFolder): void {
  process.kill(Number(readFileSync(join(folder, 'runner.pid'), 'utf8')), 'SIGKILL');
}

/** Somebody at the machine presses its button: nobody of ours ordered it. */
async function pressPower({ rack, folder }: Scene, to: 'on' | 'off'): Promise<void> {
  const command = ['raw', '0x00', '0x02', to === 'on' ? '0x01' : '0x00'];
  const args = ['-H', folder.plan.bmcAddress, '-f', '/dev/stdin', ...command];
  const child = spawn(join(rack.folder, 'ipmitool'), args, { stdio: ['pipe', 'ignore', 'ignore'] });
  child.stdin.end(`${bmcPassword}\n`);
  await once(child, 'exit');
}

const begun = (acts: readonly DiskAct[], kind: DiskAct['kind']): number =>
  acts.filter((act) => act.kind === kind && act.phase === 'begin').length;

const zeroBytes = (acts: readonly DiskAct[]): number => {
  const zeros = acts.filter(({ kind, phase }) => kind === 'zero' && phase === 'end');
  return zeros.reduce((sum, { length }) => sum + length, 0);
};

test('kill -9 of control plane, agent and runner at once changes no end', { timeout }, () =>
  midClean([disk, nvme], async (scene) => {
    const { rack, folder } = scene;
    rack.kill('controlplane', 'agent');
    killRunner(folder);
    await expectClean(scene, [disk, nvme]);
    expect(rack.starts).toMatchObject({ controlplane: 2, agent: 2 });
    expect(begun(diskLog(folder, nvme), 'format')).toBeLessThanOrEqual(2);
  }),
);

test('a clean whose agent lost its journal is interrupted, and ends well', { timeout }, () =>
  midClean([disk], async (scene) => {
    const { rack, folder } = scene;
    await rack.pause('agent');
    rmSync(join(rack.folder, 'agent/journal'));
    await rack.resume('agent');
    const host = await expectClean(scene, [disk]);
    const erase = host.status?.run?.steps.find((step) => step.destructive);
    expect(erase?.attempt).toBe(2);
    expect(zeroBytes(diskLog(folder, disk))).toBeGreaterThanOrEqual(diskBytes);
  }),
);

test('a host that loses power in mid-clean is booted again, and ends clean', { timeout }, () =>
  midClean([disk], async (scene) => {
    await pressPower(scene, 'off');
    await pressPower(scene, 'on');
    await expectClean(scene, [disk]);
  }),
);

test('a control plane that lost its store orders nothing of what it forgot', { timeout }, () =>
  midClean([disk], async (scene) => {
    const { rack, folder } = scene;
    const old = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
    await rack.pause('controlplane');
    for (const end of ['', '-wal', '-shm']) {
      rmSync(join(rack.folder, `controlplane/state.db${end}`), { force: true });
    }
    await rack.resume('controlplane');
    const { hosts } = await eventually('the control plane to answer', () =>
      rack.clients.hosts.listHosts({}),
    );
    expect(hosts).toEqual([]);
    // What had begun runs to its end; nobody orders anything after it.
    await eventually('the disk to be at rest', async () => {
      const before = diskLog(folder, disk);
      if (zeroBytes(before) < diskBytes) throw new Error('not yet');
      await sleep(1_500);
      if (diskLog(folder, disk).length > before.length) throw new Error('not yet');
    });
    const changes = diskChanges(folder, disk).length;
    await rack.pause('agent');
    await rack.enrolAgent();
    await rack.resume('agent');
    await rack.enrolHosts();
    await untilHeldAsRestored(rack);
    await rack.clients.racks.acceptRestoredStore({ name: 'racks/r1', reason: 'it is lost' });
    const host = await untilVerified(rack);
    expect(host.uid).not.toBe(old.uid);
    expect(host.status?.dirty).toBe(true);
    expect(host.status?.holds).toEqual([]);
    expect(diskChanges(folder, disk)).toHaveLength(changes);
    const asked = await rack.clients.hosts.cleanHost({ name: 'hosts/h1' });
    await expectClean(scene, [disk], asked.status?.run?.number);
  }),
);

test('a control plane that was set back to an old copy gets nothing erased', { timeout }, () =>
  midClean([disk], async (scene) => {
    const { rack, folder } = scene;
    await expectClean(scene, [disk]);
    const live = ['state.db', 'state.db-wal', 'state.db-shm'];
    const old = join(rack.folder, 'old');
    await rack.pause('controlplane');
    cpSync(join(rack.folder, 'controlplane'), old, { recursive: true });
    await rack.resume('controlplane');
    await eventually('the control plane to answer', () =>
      rack.clients.hosts.cleanHost({ name: 'hosts/h1' }),
    );
    await expectClean(scene, [disk], 3n);

    makeDisk(folder.folder, disk);
    const changes = diskChanges(folder, disk).length;
    await rack.pause('controlplane');
    for (const name of live) {
      const path = join(rack.folder, 'controlplane', name);
      rmSync(path, { force: true });
      if (existsSync(join(old, name))) cpSync(join(old, name), path);
    }
    await rack.resume('controlplane');
    await untilHeldAsRestored(rack);
    const asked = rack.clients.hosts.cleanHost({ name: 'hosts/h1' });
    await expect(asked).rejects.toThrow('the store was restored');
    await sleep(5_000);
    const { status } = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
    expect(diskChanges(folder, disk)).toHaveLength(changes);
    expect(status?.run?.number).toBe(2n);
  }),
);
