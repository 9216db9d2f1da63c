/**
 * A part that is away in the middle of a clean: silence fails nothing, and nothing is done twice.
 */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Host,
  HostGoal,
  HostState,
  RunOutcome,
  RunPhase,
  type RunStep,
  StepState,
} from '@rackwright/messages';
import { type DiskPlan, diskBytes, holdsPattern } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { type DiskAct, diskLog, type MachineFolder, type MachinePlan } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
/** Slow enough to be met in the middle: 64 challenge blocks and two megabytes of zeros. */
const disk: DiskPlan = {
  name: 'vda',
  serial: 'DISK-1',
  kind: 'overwrite',
  faults: [{ kind: 'slow', operation: 'write', delayMs: 50 }],
};
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [disk],
};

interface Scene {
  readonly rack: Rack;
  readonly folder: MachineFolder;
}

/** Runs `body` once the clean writes to the disk; then the clean has to end well, and once. */
async function midClean(body: (scene: Scene) => Promise<void>): Promise<void> {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  try {
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    await rack.untilHost('h1', 'verified', ({ status }) => {
      return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
    });
    await rack.clients.hosts.cleanHost({ name: 'hosts/h1' });
    await untilDisk(folder, 'written to', (acts) => acts.some(({ kind }) => kind === 'write'));
    await body({ rack, folder });
    await expectOneGoodEnd(rack, folder);
  } finally {
    await rack.stop();
  }
}

async function untilDisk(
  folder: MachineFolder,
  what: string,
  holds: (acts: readonly DiskAct[]) => boolean,
): Promise<void> {
  await eventually(`the disk to be ${what}`, () => {
    if (!holds(diskLog(folder, disk))) throw new Error('not yet');
  });
}

function zeroBytes(acts: readonly DiskAct[]): number {
  const zeros = acts.filter(({ kind, phase }) => kind === 'zero' && phase === 'end');
  return zeros.reduce((sum, { length }) => sum + length, 0);
}

const isErased = (acts: readonly DiskAct[]): boolean => zeroBytes(acts) >= diskBytes;

async function expectOneGoodEnd(rack: Rack, folder: MachineFolder): Promise<void> {
  const host = await rack.untilHost('h1', 'cleaned', ({ status }) => {
    return status?.run?.number === 2n && status.run.phase === RunPhase.ENDED;
  });
  expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
  expect(host.status?.run?.steps.map(({ attempt }) => attempt)).toEqual(
    host.status?.run?.steps.map(() => 1),
  );
  expect(host.status?.dirty).toBe(false);
  expect(holdsPattern(folder.folder, disk)).toBe(false);
  expect(zeroBytes(diskLog(folder, disk)), 'overwritten once').toBe(diskBytes);
  expectStepsInOrder(await timelineOf(rack));
}

/** Revisions of the clean, oldest first. */
async function timelineOf(rack: Rack): Promise<Host[]> {
  const { hosts } = rack.clients;
  const { revisions } = await hosts.listHostRevisions({ name: 'hosts/h1', pageSize: 1_000 });
  return revisions
    .toReversed()
    .flatMap(({ host }) => (host?.status?.run?.number === 2n ? [host] : []));
}

/** Each step ends once, the first one first. */
function expectStepsInOrder(timeline: readonly Host[]): void {
  const ends: number[] = [];
  let before: readonly RunStep[] = [];
  for (const host of timeline) {
    const steps = host.status?.run?.steps ?? [];
    for (const [index, step] of steps.entries()) {
      if (step.state === StepState.SUCCEEDED && before[index]?.state !== StepState.SUCCEEDED) {
        ends.push(index);
      }
      expect(step.state, `${step.name} never fails`).not.toBe(StepState.FAILED);
    }
    before = steps;
  }
  expect(ends).toEqual(before.map((_, index) => index));
}

function expectWaiting(host: Host, sinceMs: number): void {
  const { run, lastError, faults, display } = host.status ?? {};
  expect(run?.waiting?.reason).toBe('agent');
  const waitsSinceMs = run?.waiting?.since === undefined ? 0 : timestampMs(run.waiting.since);
  expect(waitsSinceMs).toBeGreaterThanOrEqual(sinceMs);
  expect(waitsSinceMs).toBeLessThanOrEqual(Date.now());
  expect(lastError).toBeUndefined();
  expect(faults).toEqual([]);
  expect(display).toBe('cleaning, waiting for agent');
}

const isWaiting = ({ status }: Host): boolean => status?.run?.phase === RunPhase.WAITING;

test('a clean whose agent is away waits, says since when, and ends well', { timeout }, () =>
  midClean(async ({ rack, folder }) => {
    const awayMs = Date.now();
    await rack.pause('agent');
    const waiting = await rack.untilHost('h1', 'waiting', isWaiting);
    expectWaiting(waiting, awayMs);
    await untilDisk(folder, 'erased without the agent', isErased);
    const still = await rack.clients.hosts.getHost({ name: 'hosts/h1' });
    expectWaiting(still, awayMs);
    expect(still.status?.run?.waiting?.since).toEqual(waiting.status?.run?.waiting?.since);
    expect(still.etag).toBe(waiting.etag);
    await rack.resume('agent');
  }),
);

test('a clean whose agent hangs waits, and goes on when the agent does', { timeout }, () =>
  midClean(async ({ rack }) => {
    const awayMs = Date.now();
    rack.signal('agent', 'SIGSTOP');
    try {
      expectWaiting(await rack.untilHost('h1', 'waiting', isWaiting), awayMs);
    } finally {
      rack.signal('agent', 'SIGCONT');
    }
  }),
);

test('a step runs on while the control plane is away, and is reported once', { timeout }, () =>
  midClean(async ({ rack, folder }) => {
    await rack.pause('controlplane');
    await untilDisk(folder, 'erased without the control plane', isErased);
    await rack.resume('controlplane');
  }),
);

test('a step runs on while agent and control plane are away', { timeout }, () =>
  midClean(async ({ rack, folder }) => {
    await rack.pause('controlplane');
    await rack.pause('agent');
    await untilDisk(folder, 'erased without both', isErased);
    await rack.resume('agent');
    await rack.resume('controlplane');
  }),
);
