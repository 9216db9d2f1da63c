/** An older copy of the store put back in mid-clean: nothing is ordered until that is accepted. */
import { cpSync, existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { diskLog, type MachineFolder } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const disk: DiskPlan = {
  name: 'vda',
  serial: 'DISK-1',
  kind: 'overwrite',
  faults: [{ kind: 'slow', operation: 'write', delayMs: 60 }],
};
const machine = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [disk],
};

/** What SQLite keeps beside the file itself. */
const parts = ['state.db', 'state.db-wal', 'state.db-shm'];

function copyStore(from: string, to: string): void {
  for (const part of parts) {
    rmSync(join(to, part), { force: true });
    if (existsSync(join(from, part))) cpSync(join(from, part), join(to, part));
  }
}

function writes(folder: MachineFolder): number {
  return diskLog(folder, disk).filter(({ kind }) => kind === 'write').length;
}

test(
  'a restored store holds every host, and cleans to the end once a person has looked',
  async () => {
    const rack = await Rack.start({ machines: [machine] });
    try {
      const [folder] = rack.machines;
      if (folder === undefined) throw new Error('no machine');
      const data = join(rack.folder, 'controlplane');
      const copy = join(rack.folder, 'copy');
      await rack.untilHost('h1', 'verified', ({ status }) => {
        return status?.state === HostState.MANAGEABLE;
      });
      await rack.pause('controlplane');
      cpSync(data, copy, { recursive: true });
      await rack.resume('controlplane');
      await eventually('the clean to write', () => {
        if (writes(folder) === 0) throw new Error('not yet');
      });
      await rack.pause('controlplane');
      copyStore(copy, data);
      await rack.resume('controlplane');

      const held = await rack.untilHost('h1', 'held', ({ status }) => {
        return status?.holds.some(({ reason }) => reason.startsWith('restored: ')) === true;
      });
      const runs = held.status?.run?.number ?? 0n;
      const { status } = await rack.clients.racks.getRack({ name: 'racks/r1' });
      expect(status?.restoredStore?.seenRevision).toBeGreaterThan(
        status?.restoredStore?.revision ?? 0n,
      );
      expect(status?.restoredStore?.journal.join('\n')).toContain('hosts/h1: operation');
      const explained = await rack.clients.hosts.explainHost({ name: 'hosts/h1' });
      expect(explained.unblock.join('\n')).toContain('rackwright rack accept-restored-store r1');

      // The erasure under way ends by itself; nothing follows it.
      await eventually('the disk to be left alone', async () => {
        const before = writes(folder);
        await sleep(3_000);
        if (writes(folder) !== before) throw new Error('it is still written');
      });
      const before = writes(folder);
      await sleep(6_000);
      expect(writes(folder)).toBe(before);
      const waiting = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
      expect(waiting.status?.state).not.toBe(HostState.AVAILABLE);
      expect(waiting.status?.run?.number ?? 0n).toBe(runs);

      await rack.clients.racks.acceptRestoredStore({ name: 'racks/r1', reason: 'seen to' });
      await rack.untilHost('h1', 'waiting for a person', ({ status }) => {
        return status?.backoff?.givenUpReason.startsWith('the store was restored') === true;
      });
      expect(writes(folder)).toBe(before);
      await rack.clients.hosts.retryHost({ name: 'hosts/h1' });
      const done = await rack.untilHost('h1', 'available', ({ status }) => {
        return status?.state === HostState.AVAILABLE && status.run?.phase === RunPhase.ENDED;
      });
      expect(done.status?.holds).toEqual([]);
      expect(done.status?.run).toMatchObject({
        kind: RunKind.CLEAN,
        outcome: RunOutcome.SUCCEEDED,
      });
      expect(done.status?.lastCleaned?.certificates).toHaveLength(1);
      // The disk itself was erased once more, by an order of its own.
      expect(writes(folder)).toBeGreaterThan(before);
      expect(holdsPattern(folder.folder, disk)).toBe(false);
    } finally {
      await rack.stop();
    }
  },
  timeout,
);
