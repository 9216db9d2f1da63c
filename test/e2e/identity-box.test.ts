/**
 * A rack box that is dead for good, replaced as the documentation says: a token for replacing, a
 * box with an empty disk, join. Hosts and an operation in flight are taken over.
 */
import { execFile } from 'node:child_process';
import { readFileSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { HostGoal, HostState, RunOutcome, RunPhase } from '@rackwright/messages';
import { type DiskPlan, diskBytes, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { diskLog, type MachinePlan } from './machines.ts';
import { programOf } from './programs.ts';
import { eventually, Rack } from './rack.ts';

const run = promisify(execFile);
const timeout = 600_000;
const slow = { kind: 'slow', operation: 'write', delayMs: 50 } as const;

const machine = (n: number): MachinePlan & { readonly disks: readonly [DiskPlan] } => ({
  name: `h${n}`,
  bmcAddress: `127.0.0.2${n}`,
  mac: `52:54:00:00:00:0${n}`,
  uuid: `0102030405060708090a0b0c0d0e0f1${n}`,
  serial: `SN-${n}`,
  disks: [{ name: 'vda', serial: `DISK-${n}`, kind: 'overwrite', faults: [slow] }],
});

test('a dead rack box is replaced in mid-clean, and the new one ends its work', {
  timeout,
}, async () => {
  const plans = [machine(1), machine(2)] as const;
  const rack = await Rack.start({ machines: plans, goal: HostGoal.MANAGEABLE });
  try {
    const { hosts, racks } = rack.clients;
    for (const { name } of plans) {
      await rack.untilHost(name, 'verified', ({ status }) => {
        return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
      });
    }
    const [folder] = rack.machines;
    const [disk] = plans[0].disks;
    if (folder === undefined) throw new Error('no machine');
    await hosts.cleanHost({ name: 'hosts/h1' });
    await eventually('the clean to write to the disk', () => {
      if (!diskLog(folder, disk).some(({ kind }) => kind === 'write')) throw new Error('not yet');
    });

    // The box burns. Nothing of its disk comes back.
    await rack.pause('agent');
    renameSync(join(rack.folder, 'agent'), join(rack.folder, 'burnt'));
    await expect(racks.createJoinToken({ rack: 'racks/r1' })).rejects.toThrow('--replace');
    const { token } = await racks.createJoinToken({ rack: 'racks/r1', replaceAgent: true });
    const address = rack.commandEnvironment['RACKWRIGHT_SERVER'] ?? '';
    const config = join(rack.folder, 'agent.json');
    await run(process.execPath, [programOf('agent'), 'join', address, token, '--config', config]);
    await rack.resume('agent');

    const cleaned = await rack.untilHost('h1', 'cleaned', ({ status }) => {
      return status?.run?.kind !== undefined && status.run.phase === RunPhase.ENDED;
    });
    expect(cleaned.status?.run?.outcome, cleaned.status?.run?.error?.message).toBe(
      RunOutcome.SUCCEEDED,
    );
    // What the dead box had begun ended as interrupted (its journal is another one), and was done
    // again because overwriting may be.
    const erase = cleaned.status?.run?.steps.find(({ destructive }) => destructive);
    expect(erase?.attempt).toBe(2);
    expect(holdsPattern(folder.folder, disk)).toBe(false);
    const zeros = diskLog(folder, disk).filter(({ kind, phase }) => {
      return kind === 'zero' && phase === 'end';
    });
    expect(zeros.reduce((sum, { length }) => sum + length, 0)).toBeGreaterThanOrEqual(diskBytes);

    // The hosts that did nothing meanwhile are the new box's as well.
    const asked = await hosts.cleanHost({ name: 'hosts/h2' });
    const other = await rack.untilHost('h2', 'cleaned', ({ status }) => {
      return (
        status?.run?.number === asked.status?.run?.number && status?.run?.phase === RunPhase.ENDED
      );
    });
    expect(other.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    const { status } = await racks.getRack({ name: 'racks/r1' });
    expect(status).toMatchObject({ agentConnected: true, revokedKeys: 1 });
    expect(status?.lastRevoked?.replaced).toBe(true);

    // Somebody finds the old box and switches it on: it hears whose place was taken, and why.
    await rack.pause('agent');
    renameSync(join(rack.folder, 'agent'), join(rack.folder, 'new'));
    renameSync(join(rack.folder, 'burnt'), join(rack.folder, 'agent'));
    await rack.resume('agent');
    await eventually('the old box to be told', () => {
      const log = readFileSync(join(rack.folder, 'agent.log'), 'utf8');
      if (!log.includes('took this one’s place in racks/r1')) throw new Error('not yet');
    });
  } finally {
    await rack.stop();
  }
});
