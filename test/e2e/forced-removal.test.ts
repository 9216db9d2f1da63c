/**
 * Hosts that are removed by force, over real processes: with the agent away, and with agent or
 * control plane killed at every boundary of the removal.
 */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import {
  type AbandonedResource,
  ApiFailure,
  DeletionMode,
  type Host,
  HostGoal,
  HostState,
  RunPhase,
} from '@rackwright/api';
import { describe, expect, test } from 'vitest';
import { removalBoundaries, removalTable, removalVictims } from './kill-table.ts';
import type { MachinePlan } from './machines.ts';
import { shortPauses } from './pauses.ts';
import { programOf } from './programs.ts';
import { eventually, Rack } from './rack.ts';

const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [],
};
const run = promisify(execFile);
const timeout = 300_000;
const name = 'hosts/h1';
/** The harness's own, with little patience for an agent that hangs. */
const engine = { ...shortPauses, goalFailuresMax: 2, forcedCallTimeoutMs: 500 };

const isVerified = ({ status }: Host): boolean =>
  status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;

function isNotFound(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.kind === 'notFound';
}

/** What the command prints. */
async function rackwright(rack: Rack, ...args: string[]): Promise<string> {
  const env = rack.commandEnvironment;
  const { stdout, stderr } = await run(process.execPath, [programOf('rackwright'), ...args], {
    env,
  });
  return stdout + stderr;
}

async function untilGone(rack: Rack): Promise<void> {
  await eventually('the host to be gone', async () => {
    const found = await rack.clients.hosts.getHost({ name }).then(
      () => true,
      (error: unknown) => {
        if (isNotFound(error)) return false;
        throw error;
      },
    );
    if (found) throw new Error('it is still there');
  });
}

async function notes(rack: Rack): Promise<AbandonedResource[]> {
  const { abandonedResources } = await rack.clients.abandoned.listAbandonedResources({});
  return abandonedResources;
}

async function untilFenceIsLifted(rack: Rack): Promise<void> {
  await eventually('the agent to have forgotten the host', async () => {
    const { status } = await rack.clients.racks.getRack({ name: 'racks/r1' });
    const pending = (await notes(rack)).filter(({ fencePending }) => fencePending);
    if (status?.tombstones !== 0 || pending.length > 0) throw new Error('not yet');
  });
}

async function enrolAgain(rack: Rack): Promise<Host> {
  const spec = {
    rack: 'racks/r1',
    bmc: { address: machine.bmcAddress, credential: 'credentials/bmc' },
    bootMacs: [machine.mac],
    goal: HostGoal.MANAGEABLE,
  };
  const request = { hostId: 'h1', host: { spec }, requestId: 'again' };
  return eventually('the host to be enrolled again', () => rack.clients.hosts.createHost(request));
}

function remove(rack: Rack): Promise<Host> {
  const mode = DeletionMode.FORCE;
  return rack.clients.hosts.deleteHost({ name, mode, reason: 'burnt down', requestId: 'force' });
}

test('a host whose agent is away is removed at once; its successor waits for the agent', {
  timeout,
}, async () => {
  const rack = await Rack.start({ machines: [machine], goal: HostGoal.MANAGEABLE });
  try {
    const before = await rack.untilHost('h1', 'verified', isVerified);
    await rack.pause('agent');
    await rack.untilHost('h1', 'without its agent', ({ status }) => !status?.agentConnected);
    const said = await rackwright(
      rack,
      'host',
      'delete',
      'h1',
      '--yes',
      '--force',
      '--reason',
      'burnt down',
    );
    expect(said).toContain('hosts/h1 removed');
    expect(said).toContain(`rackwright abandoned get ${before.uid}`);
    await untilGone(rack);
    const [left, ...others] = await notes(rack);
    expect(others).toEqual([]);
    expect(left).toMatchObject({ host: name, hostUid: before.uid, fencePending: true });
    expect(left?.leftBehind.join('\n')).toContain('the agent of the rack is not connected');

    expect(await rackwright(rack, 'abandoned', 'list')).toMatch(
      new RegExp(`${before.uid} +h1 .*pending`),
    );

    const again = await enrolAgain(rack);
    expect(again.status?.holds.map(({ reason }) => reason)).toEqual([
      expect.stringContaining(`abandonedResources/${before.uid}`),
    ]);
    const told = await rack.clients.hosts.explainHost({ name });
    expect(told.unblock.join('\n')).toContain('--physically-disconnected');
    await rack.resume('agent');
    await untilFenceIsLifted(rack);
    const successor = await rack.untilHost('h1', 'verified', isVerified);
    expect(successor.status?.holds).toEqual([]);
    expect(successor.uid).not.toBe(before.uid);
    await rackwright(rack, 'abandoned', 'resolve', before.uid, '--reason', 'scrapped');
    const resolved = await rackwright(rack, 'abandoned', 'get', before.uid);
    expect(resolved).toMatch(/fence +lifted/);
    expect(resolved).toMatch(/resolved +.* by user:admin: scrapped/);
    expect(await rackwright(rack, 'abandoned', 'list')).not.toContain(before.uid);
  } finally {
    await rack.stop();
  }
});

const rows = removalBoundaries.flatMap((boundary) =>
  removalVictims.map((victim) => ({ boundary, victim, ...removalTable[boundary][victim] })),
);

describe('the kill table of a forced removal', () => {
  test.for(rows)(
    'kill -9 of the $victim at $boundary',
    { timeout },
    async ({ boundary, victim, notes: noteCount, tombstones, successor }) => {
      const crash = { name: boundary, occurrence: 1, victim };
      const controlplane = { engine };
      const rack = await Rack.start({
        machines: [machine],
        goal: HostGoal.MANAGEABLE,
        controlplane,
        crash,
      });
      try {
        await rack.untilHost('h1', 'verified', isVerified);
        rack.signal('agent', 'SIGSTOP');
        // Whoever dies over it: the intent is written down before anything else.
        await remove(rack);
        await untilGone(rack);
        rack.signal('agent', 'SIGCONT');
        await enrolAgain(rack);
        await untilFenceIsLifted(rack);
        const { status } = await rack.clients.racks.getRack({ name: 'racks/r1' });
        expect(status?.tombstones).toBe(tombstones);
        expect(await notes(rack)).toHaveLength(noteCount);
        await rack.untilHost('h1', successor, isVerified);
        expect(rack.starts[victim], 'the victim was killed once and came back').toBe(2);
      } finally {
        await rack.stop();
      }
    },
  );
});
