/** Restores yesterday's backup. It lacks all later work on hosts; none of that work is undone. */
import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { HoldScope, type Host, HostGoal, HostState, RunPhase } from '@rackwright/messages';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { diskChanges, type MachineFolder } from './machines.ts';
import { programOf } from './programs.ts';
import { Rack } from './rack.ts';

const run = promisify(execFile);
const program = programOf('controlplane');
const command = programOf('rackwright');

const disk: DiskPlan = { name: 'vda', serial: 'DISK', kind: 'overwrite' };
const machineOf = (n: number) => ({
  name: `h${n}`,
  bmcAddress: `127.0.0.${30 + n}`,
  mac: `52:54:00:00:00:0${n}`,
  uuid: `0${n}02030405060708090a0b0c0d0e0f10`,
  serial: `SN-${n}`,
  disks: [disk],
});

const changes = (folder: MachineFolder) => diskChanges(folder, disk).length;

/** Whatever could be started by itself has had the time to start. */
async function leftAlone(machines: readonly MachineFolder[]): Promise<boolean> {
  const before = machines.map(changes).join();
  await sleep(6_000);
  return machines.map(changes).join() === before;
}

const isHeld = ({ status }: Host) =>
  status?.holds.some(({ reason }) => reason.startsWith('restored: ')) === true;
const isAvailable = ({ status }: Host) =>
  status?.state === HostState.AVAILABLE && status.run?.phase === RunPhase.ENDED;

test('a restored copy is another incarnation, and holds hosts until a person decides', async () => {
  const rack = await Rack.start({
    machines: [machineOf(1), machineOf(2)],
    goal: HostGoal.MANAGEABLE,
  });
  try {
    const before = await backUpAndGoOn(rack);
    await restoreYesterday(rack);
    await nothingIsUndone(rack, before);
    await aPersonDecides(rack, before);
  } finally {
    await rack.stop();
  }
});

const tarOf = (rack: Rack) => join(rack.folder, 'yesterday.tar');
const controlPlane = (rack: Rack, ...args: string[]) =>
  run(process.execPath, [program, ...args, '--config', join(rack.folder, 'controlplane.json')]);
/** The person's own copy: no backup holds a token. */
const tokenOf = (rack: Rack) => join(rack.folder, 'own.token');
const rackwright = (rack: Rack, ...args: string[]) =>
  run(process.execPath, [command, ...args], {
    env: { ...rack.commandEnvironment, RACKWRIGHT_TOKEN_FILE: tokenOf(rack) },
  });
const adopt = { name: 'hosts/h2', to: HostState.EXTERNAL, reason: 'the other team’s' };

function machinesOf({ machines: [cleaned, adopted] }: Rack) {
  if (cleaned === undefined || adopted === undefined) throw new Error('no machines');
  return { cleaned, adopted };
}

/** Returns how often the disk of the cleaned host was changed. */
async function backUpAndGoOn(rack: Rack): Promise<number> {
  const { hosts } = rack.clients;
  const { cleaned } = machinesOf(rack);
  // Yesterday both hosts were to be cleaned as soon as somebody lets go of them.
  for (const name of ['h1', 'h2']) {
    await rack.untilHost(name, 'known', ({ status }) => status?.state === HostState.MANAGEABLE);
    const hold = { name: `hosts/${name}`, scope: HoldScope.WORK, reason: 'not today' };
    await hosts.holdHost(hold);
    await hosts.updateHost({
      host: { name: `hosts/${name}`, spec: { goal: HostGoal.AVAILABLE } },
      updateMask: { paths: ['spec.goal'] },
    });
  }
  const backup = await controlPlane(rack, 'backup', '--to', tarOf(rack));
  expect(backup.stdout).toContain('The key of secrets is in it');
  copyFileSync(rack.commandEnvironment['RACKWRIGHT_TOKEN_FILE'] ?? '', tokenOf(rack));
  expect(rack.starts.controlplane).toBe(1);

  // Since then: one is cleaned and in use, the other somebody else's.
  await hosts.releaseHold({ name: 'hosts/h1', reason: 'today' });
  await rack.untilHost('h1', 'available', isAvailable);
  await hosts.claimHost({ name: 'hosts/h1', reason: 'build farm' });
  await hosts.updateHost({
    host: { name: 'hosts/h2', spec: { goal: HostGoal.MANAGEABLE } },
    updateMask: { paths: ['spec.goal'] },
  });
  await hosts.releaseHold({ name: 'hosts/h2', reason: 'today' });
  await hosts.adoptHost(adopt);
  await rack.untilHost('h2', 'external', ({ status }) => status?.state === HostState.EXTERNAL);
  const before = changes(cleaned);
  expect(before).toBeGreaterThan(0);
  return before;
}

async function restoreYesterday(rack: Rack): Promise<void> {
  const data = join(rack.folder, 'controlplane');
  await rack.pause('controlplane');
  await rack.pause('agent');
  await expect(controlPlane(rack, 'restore', '--from', tarOf(rack))).rejects.toThrow(
    'into an empty folder',
  );
  rmSync(data, { recursive: true });
  const restored = await controlPlane(rack, 'restore', '--from', tarOf(rack));
  expect(restored.stdout).toContain('rackwright rack accept-restored-store');
  expect(existsSync(join(data, 'restoring'))).toBe(false);
  await rack.resume('agent');
  await rack.resume('controlplane');
}

async function nothingIsUndone(rack: Rack, before: number): Promise<void> {
  const { hosts } = rack.clients;
  const { cleaned, adopted } = machinesOf(rack);
  for (const name of ['h1', 'h2']) await rack.untilHost(name, 'held', isHeld);
  // Even without the holds of yesterday's person.
  for (const name of ['h1', 'h2']) {
    await hosts.releaseHold({ name: `hosts/${name}`, hold: 'not today', reason: 'today' });
  }
  expect(await leftAlone(rack.machines)).toBe(true);
  const { stdout: told } = await rackwright(rack, 'host', 'explain', 'h2');
  expect(told).toContain('rackwright rack accept-restored-store r1');

  await rackwright(rack, 'rack', 'accept-restored-store', 'r1', '--reason', 'seen to');
  for (const name of ['h1', 'h2']) {
    await rack.untilHost(name, 'waiting for a person', (host) => {
      const { status } = host;
      const givenUp = status?.backoff?.givenUpReason.startsWith('the store was restored');
      return !isHeld(host) && givenUp === true;
    });
  }
  expect(await leftAlone(rack.machines)).toBe(true);
  expect(changes(cleaned)).toBe(before);
  expect(changes(adopted)).toBe(0);
  expect(holdsPattern(adopted.folder, disk)).toBe(true);
}

async function aPersonDecides(rack: Rack, before: number): Promise<void> {
  const { hosts } = rack.clients;
  const { cleaned, adopted } = machinesOf(rack);
  // A person knows whose h2 is; h1 is free to be cleaned again.
  await hosts.adoptHost(adopt);
  await rack.untilHost('h2', 'external', ({ status }) => status?.state === HostState.EXTERNAL);
  const { stdout: advised } = await rackwright(rack, 'host', 'explain', 'h1');
  expect(advised).toContain('rackwright host retry h1');
  await rackwright(rack, 'host', 'retry', 'h1');
  await rack.untilHost('h1', 'available', isAvailable);
  expect(changes(cleaned)).toBeGreaterThan(before);
  expect(holdsPattern(adopted.folder, disk)).toBe(true);
}
