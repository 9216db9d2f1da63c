/** The brakes over real processes: a freeze in the middle of several cleans, a limit, a budget. */
import {
  type Host,
  HostGoal,
  HostState,
  type HostWait,
  hostWaitOf,
  RunPhase,
} from '@rackwright/messages';
import type { DiskPlan } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import { diskLog, type MachineFolder, type MachinePlan } from './machines.ts';
import { eventually, Rack } from './rack.ts';

const timeout = 600_000;
const name = 'racks/r1';

/** The lease that the rack's control plane gives; see `Rack`. */
const leaseMs = 3_000;

function diskOf(n: number): DiskPlan {
  const slow = { kind: 'slow', operation: 'write', delayMs: 40 } as const;
  return { name: 'vda', serial: `DISK-${n}`, kind: 'overwrite', faults: [slow] };
}

function machine(n: number): MachinePlan {
  return {
    name: `h${n}`,
    bmcAddress: `127.0.0.2${n}`,
    mac: `52:54:00:00:00:0${n}`,
    uuid: `0102030405060708090a0b0c0d0e0f1${n}`,
    serial: `SN-${n}`,
    disks: [diskOf(n)],
  };
}

async function withMachines(count: number, body: (rack: Rack) => Promise<void>): Promise<void> {
  const machines = Array.from({ length: count }, (_, index) => machine(index + 1));
  const rack = await Rack.start({ machines, goal: HostGoal.MANAGEABLE });
  try {
    for (const { plan } of rack.machines) await untilVerified(rack, plan.name);
    await body(rack);
  } finally {
    await rack.stop();
  }
}

function untilVerified(rack: Rack, host: string): Promise<Host> {
  return rack.untilHost(host, 'verified', ({ status }) => {
    return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
  });
}

/** What the disk itself says was written to it. */
function writes({ folder, plan, ...rest }: MachineFolder): number {
  const [disk] = plan.disks;
  if (disk === undefined) throw new Error('the machine has no disk');
  return diskLog({ folder, plan, ...rest }, disk).filter(({ kind }) => kind === 'write').length;
}

async function clean(rack: Rack, ...hosts: readonly string[]): Promise<void> {
  for (const host of hosts) await rack.clients.hosts.cleanHost({ name: `hosts/${host}` });
}

async function untilCleaned(rack: Rack, ...hosts: readonly string[]): Promise<void> {
  for (const host of hosts) {
    await rack.untilHost(host, 'cleaned', ({ status }) => {
      return status?.run?.phase === RunPhase.ENDED && !status.dirty;
    });
  }
}

function waitingFor(rack: Rack, host: string, wait: HostWait): Promise<Host> {
  return rack.untilHost(host, `waiting for ${wait}`, ({ status }) => {
    return hostWaitOf(status?.run?.waiting) === wait;
  });
}

test(
  'a freeze amid several cleans lets the steps under way finish, and others wait for the thaw',
  async () => {
    await withMachines(3, async (rack) => {
      const [first, second, third] = rack.machines as [MachineFolder, MachineFolder, MachineFolder];
      await clean(rack, 'h1');
      await eventually('the first clean to write', () => {
        if (writes(first) === 0) throw new Error('not yet');
      });
      await rack.clients.fleet.freezeFleet({ reason: 'a fire drill' });
      await clean(rack, 'h2', 'h3');
      await untilCleaned(rack, 'h1');
      for (const host of ['h2', 'h3']) {
        const { status } = await waitingFor(rack, host, 'freeze');
        expect(status?.run?.waiting?.message).toContain('the fleet is frozen by user:admin since');
        expect(status?.run?.waiting?.message).toContain(': a fire drill');
      }
      // Neither a new control plane nor a new agent forgets it.
      rack.kill('controlplane', 'agent');
      await new Promise((resolve) => setTimeout(resolve, 2 * leaseMs));
      await waitingFor(rack, 'h2', 'freeze');
      expect([writes(second), writes(third)]).toEqual([0, 0]);
      await eventually('the thaw', () => rack.clients.fleet.thawFleet({ reason: 'over' }));
      await untilCleaned(rack, 'h2', 'h3');
    });
  },
  timeout,
);

test(
  'a limit of one and a wipe budget let hosts go one by one, and the rest show their position',
  async () => {
    await withMachines(3, async (rack) => {
      // Longer than two cleans take on a busy machine: only a person ends this wait.
      const spec = { limits: { runs: 1 }, wipeBudget: { hosts: 2, seconds: 3_600 } };
      await rack.clients.racks.updateRack({ rack: { name, spec } });
      await clean(rack, 'h1', 'h2', 'h3');
      const { status } = await waitingFor(rack, 'h3', 'capacity');
      expect(status?.run?.waiting?.position).toBe(2);
      const explained = await rack.clients.hosts.explainHost({ name: 'hosts/h3' });
      expect(explained.blocker).toBe('the limit of runs');
      await untilCleaned(rack, 'h1', 'h2');
      await waitingFor(rack, 'h3', 'wipeBudget');
      const wider = { limits: { runs: 1 }, wipeBudget: { hosts: 3, seconds: 3_600 } };
      await rack.clients.racks.updateRack({ rack: { name, spec: wider } });
      await untilCleaned(rack, 'h3');
    });
  },
  timeout,
);
