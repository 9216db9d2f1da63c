/**
 * Manual cleans by people, through the real programs: a list with a step of the agent, a hold, a
 * pause, a boot and a burn-in between; an abort in the last step, and going on after it.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  BurnInKind,
  ErasureLevel,
  type Host,
  HostGoal,
  HostState,
  hostWaitOf,
  type Run,
  RunOutcome,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import { type DiskPlan, diskBytes, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { diskLog, type MachineFolder, type MachinePlan, runnerStarts } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const name = 'hosts/h1';

function machineWith(disk: DiskPlan): MachinePlan {
  return {
    name: 'h1',
    bmcAddress: '127.0.0.21',
    mac: '52:54:00:00:00:01',
    uuid: '0102030405060708090a0b0c0d0e0f10',
    serial: 'SN-1',
    disks: [disk],
  };
}

/** A verified host whose runner has reported its steps. */
async function onRack(
  disk: DiskPlan,
  body: (rack: Rack, folder: MachineFolder) => Promise<void>,
): Promise<void> {
  const rack = await Rack.start({ machines: [machineWith(disk)], goal: HostGoal.MANAGEABLE });
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    await rack.untilHost('h1', 'verified', ({ status }) => {
      return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
    });
    await body(rack, folder);
  } finally {
    await rack.stop();
  }
}

const runOf = ({ status }: Host): Run | undefined => status?.run;
const hasEnded = (number: bigint) => (host: Host) =>
  runOf(host)?.number === number && runOf(host)?.phase === RunPhase.ENDED;

/** All of the disk. */
const burnt = { name: 'DISK-1', bytes: BigInt(diskBytes), errors: 0n, finding: '' };

/** Over the loopback, of which no card counts. */
const exchanged = { name: 'network', bytes: 3n * 1024n * 1024n, errors: 0n, finding: '' };

const plain = (step: string) => ({ step, arguments: {} });

test(
  'a list holds for a person, pauses across a restart, boots again, and ends clean',
  {
    timeout,
  },
  () =>
    onRack({ name: 'vda', serial: 'DISK-1', kind: 'discard' }, async (rack, folder) => {
      const { hosts } = rack.clients;
      writeFileSync(join(folder.folder, 'log-entries'), '42\n');
      const steps = [
        plain('management.clear_event_log'),
        plain('hold'),
        { step: 'wait', arguments: { seconds: '4' } },
        plain('reboot'),
        { step: 'burnin.network', arguments: { size: '3' } },
        { step: 'burnin.disk', arguments: { share: '100' } },
        plain('deploy.erase_devices'),
      ];
      await hosts.cleanHost({ name, steps });
      const held = await rack.untilHost('h1', 'held', ({ status }) => {
        return hostWaitOf(status?.run?.waiting) === 'hold';
      });
      expect(held.status?.display).toBe('cleaning, held for a person');
      expect(readFileSync(join(folder.folder, 'log-entries'), 'utf8')).toBe('1\n');
      const listed = await hosts.listCleanSteps({ name });
      expect(listed.complete).toBe(true);
      expect(listed.steps.find((step) => step.name === 'management.clear_event_log')).toMatchObject(
        {
          source: 'agent',
          enabled: false,
        },
      );

      await hosts.resumeRun({ name, reason: 'looked at it' });
      // It may be over again before anybody has looked.
      const beginOf = (host: Host) =>
        runOf(host)?.steps.find((step) => step.name === 'wait')?.startTime;
      const paused = await rack.untilHost('h1', 'pausing', (host) => beginOf(host) !== undefined);
      const began = beginOf(paused);
      const beganMs = began === undefined ? Number.NaN : timestampMs(began);
      await rack.pause('controlplane');
      await rack.resume('controlplane');
      const cleaned = await rack.untilHost('h1', 'cleaned', hasEnded(2n));

      expect(runOf(cleaned)?.outcome).toBe(RunOutcome.SUCCEEDED);
      const wait = runOf(cleaned)?.steps.find((step) => step.name === 'wait');
      const endedMs = wait?.endTime === undefined ? 0 : timestampMs(wait.endTime);
      expect(endedMs - beganMs).toBeGreaterThanOrEqual(4_000);
      expect(cleaned.status).toMatchObject({
        dirty: false,
        lastCleaned: { level: ErasureLevel.FULL, at: expect.anything() },
        burnIns: [
          { kind: BurnInKind.DISK, passed: true, parts: [burnt] },
          { kind: BurnInKind.NETWORK, passed: true, parts: [exchanged] },
        ],
      });
      expect(runnerStarts(folder), 'once at the start, once for the reboot').toBe(2);
      const { revisions } = await hosts.listHostRevisions({ name, pageSize: 1_000 });
      const causes = revisions.map(({ actor, cause }) => `${actor}: ${cause}`).join('\n');
      expect(causes).toMatch(/user:\S+: resume requested; hold resumed: looked at it/);
    }),
);

/** Slow enough to be met in the middle. */
const slowDisk: DiskPlan = {
  name: 'vda',
  serial: 'DISK-1',
  kind: 'overwrite',
  faults: [{ kind: 'slow', operation: 'write', delayMs: 50 }],
};

test(
  'an abort in the last step never leaves a clean host; what is resumed uses the same boot',
  {
    timeout,
  },
  () =>
    onRack(slowDisk, async (rack, folder) => {
      const { hosts } = rack.clients;
      await hosts.cleanHost({ name, steps: [plain('deploy.erase_devices')] });
      await eventually('the disk to be written to', () => {
        if (!diskLog(folder, slowDisk).some(({ kind }) => kind === 'write'))
          throw new Error('not yet');
      });
      await hosts.abortRun({ name, reason: 'wrong host' });
      await hosts.abortRun({ name, reason: 'asked once more' });
      const aborted = await rack.untilHost('h1', 'aborted', hasEnded(2n));
      expect(runOf(aborted)?.outcome).toBe(RunOutcome.CANCELLED);
      expect(runOf(aborted)?.error?.message).toContain('wrong host');
      expect(aborted.status).toMatchObject({
        state: HostState.MANAGEABLE,
        dirty: true,
        afterFailure: { bootOnly: 'runner', run: 'clean 2' },
      });

      await hosts.resumeRun({ name, reason: 'it was the right one' });
      const resumed = await rack.untilHost('h1', 'cleaned', hasEnded(3n));
      expect(runOf(resumed)).toMatchObject({ outcome: RunOutcome.SUCCEEDED, resumes: 'clean 2' });
      expect(runOf(resumed)?.steps.every(({ state }) => state === StepState.SUCCEEDED)).toBe(true);
      expect(resumed.status?.dirty).toBe(false);
      expect(runnerStarts(folder)).toBe(1);
      expect(holdsPattern(folder.folder, slowDisk)).toBe(false);
    }),
);
