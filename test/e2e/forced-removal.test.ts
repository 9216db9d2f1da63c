/**
 * Hosts that are removed by force, over real processes: with the agent away, and with agent or
 * control plane killed at every boundary of the removal.
 */
import {
  type AbandonedResource,
  ApiFailure,
  DeletionMode,
  type Host,
  HostGoal,
  HostState,
  RunPhase,
} from '@rackwright/messages';
import { afterAll, describe, expect, test } from 'vitest';
import { typed } from './command.ts';
import { livesOf, newRow } from './kill-clean.ts';
import { removalBoundaries, removalTable, removalVictims } from './kill-table.ts';
import type { MachinePlan } from './machines.ts';
import { shortPauses } from './pauses.ts';
import { eventually, Rack } from './rack.ts';
import { RackPool } from './rack-pool.ts';

const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [],
};
const timeout = 300_000;
/** The harness's own, with little patience for an agent that hangs. */
const engine = { ...shortPauses, goalFailuresMax: 2, forcedCallTimeoutMs: 500 };

const isVerified = ({ status }: Host): boolean =>
  status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;

function isNotFound(error: unknown): boolean {
  return error instanceof ApiFailure && error.error.kind === 'notFound';
}

/** What the command prints. */
async function rackwright(rack: Rack, ...args: string[]): Promise<string> {
  const { code, out, err } = await typed(rack.commandEnvironment, args);
  expect(code, err).toBe(0);
  return out + err;
}

async function untilGone(rack: Rack, name: string): Promise<void> {
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

async function notes(rack: Rack, name: string): Promise<AbandonedResource[]> {
  const { abandonedResources } = await rack.clients.abandoned.listAbandonedResources({});
  return abandonedResources.filter(({ host }) => host === name);
}

async function untilFenceIsLifted(rack: Rack, name: string): Promise<void> {
  await eventually('the agent to have forgotten the host', async () => {
    const { status } = await rack.clients.racks.getRack({ name: 'racks/r1' });
    const pending = (await notes(rack, name)).filter(({ fencePending }) => fencePending);
    if (status?.tombstones !== 0 || pending.length > 0) throw new Error('not yet');
  });
}

async function enrolAgain(rack: Rack, plan: MachinePlan): Promise<Host> {
  const spec = {
    rack: 'racks/r1',
    bmc: { address: plan.bmcAddress, credential: 'credentials/bmc' },
    bootMacs: [plan.mac],
    goal: HostGoal.MANAGEABLE,
  };
  const request = { hostId: plan.name, host: { spec }, requestId: `again-${plan.name}` };
  return eventually('the host to be enrolled again', () => rack.clients.hosts.createHost(request));
}

function remove(rack: Rack, name: string): Promise<Host> {
  const mode = DeletionMode.FORCE;
  const requestId = `force-${name.replace('/', '-')}`;
  return rack.clients.hosts.deleteHost({ name, mode, reason: 'burnt down', requestId });
}

test('a host whose agent is away is removed at once; its successor waits for the agent', {
  timeout,
}, async () => {
  const name = 'hosts/h1';
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
    await untilGone(rack, name);
    const [left, ...others] = await notes(rack, name);
    expect(others).toEqual([]);
    expect(left).toMatchObject({ host: name, hostUid: before.uid, fencePending: true });
    expect(left?.leftBehind.join('\n')).toContain('the agent of the rack is not connected');

    expect(await rackwright(rack, 'abandoned', 'list')).toMatch(
      new RegExp(`${before.uid} +h1 .*pending`),
    );

    const again = await enrolAgain(rack, machine);
    expect(again.status?.holds.map(({ reason }) => reason)).toEqual([
      expect.stringContaining(`abandonedResources/${before.uid}`),
    ]);
    const told = await rack.clients.hosts.explainHost({ name });
    expect(told.unblock.join('\n')).toContain('--physically-disconnected');
    await rack.resume('agent');
    await untilFenceIsLifted(rack, name);
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

const racks = new RackPool({ goal: HostGoal.MANAGEABLE, controlplane: { engine } });

afterAll(() => racks.close());

describe('the kill table of a forced removal', () => {
  test.for(rows)(
    'a forced removal survives kill -9 of the $victim at $boundary',
    { timeout },
    ({ boundary, victim, notes: noteCount, tombstones, successor }) =>
      racks.use(async (rack) => {
        const row = await newRow(rack, machine, { name: boundary, occurrence: 1, victim });
        const { plan } = row.machine;
        const name = `hosts/${plan.name}`;
        await rack.untilHost(plan.name, 'verified', isVerified);
        rack.signal('agent', 'SIGSTOP');
        // Whoever dies over it: the intent is written down before anything else.
        await remove(rack, name);
        await untilGone(rack, name);
        rack.signal('agent', 'SIGCONT');
        await enrolAgain(rack, plan);
        await untilFenceIsLifted(rack, name);
        const { status } = await rack.clients.racks.getRack({ name: 'racks/r1' });
        expect(status?.tombstones).toBe(tombstones);
        expect(await notes(rack, name)).toHaveLength(noteCount);
        await rack.untilHost(plan.name, successor, isVerified);
        expect(livesOf(row, victim), 'the victim was killed once and came back').toBe(2);
      }),
  );
});
