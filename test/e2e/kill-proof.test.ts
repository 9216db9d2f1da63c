/**
 * The kill table's rows for reading again after a power cycle: each process is killed at each
 * boundary, and the clean ends once, with one document of each kind that is due.
 */
import { FailureType, HostGoal, PowerCycleCheck } from '@rackwright/api';
import { describe, expect, test } from 'vitest';
import {
  type CleanEnd,
  cleanOnce,
  documentsOf,
  forgetfulMachine,
  judgeClean,
  machine,
  readAgainInVain,
} from './kill-clean.ts';
import {
  proofBoundaries,
  proofEnd,
  revocationBoundaries,
  revocationEnd,
  type Victim,
  victims,
} from './kill-table.ts';
import { eventually, Rack } from './rack.ts';

const rowTimeoutMs = 600_000;
/** A clean of two boots starts two runners; so does one with a boot after it. */
const undisturbedLives = { controlplane: 1, agent: 1, runner: 2 } as const;
/** The host is switched off next: a runner that is killed then is not always started again. */
const switchedOffNext = new Set(['cp.manifestStored', 'cp.addendumStored', 'cp.revocationStored']);

interface Boundary {
  readonly name: string;
  readonly occurrence: number;
}

function rowsOf(boundaries: readonly Boundary[]) {
  return boundaries.flatMap((boundary) => victims.map((victim) => ({ ...boundary, victim })));
}

async function readAgainAtOnce({ clients }: Rack): Promise<void> {
  const cleaning = { powerCycleCheck: PowerCycleCheck.IMMEDIATE };
  await clients.hosts.updateHost({
    host: { name: 'hosts/h1', spec: { cleaning } },
    updateMask: { paths: ['spec.cleaning.power_cycle_check'] },
  });
}

/** Waits for the next life of who was killed as all ended; answers what the disks say then. */
async function judgedAfterOneKill(rack: Rack, victim: Victim, name: string): Promise<CleanEnd> {
  const mayStayAway = victim === 'runner' && switchedOffNext.has(name);
  const least = undisturbedLives[victim] + (mayStayAway ? 0 : 1);
  await eventually(`life ${least} of the ${victim}`, () => {
    expect(judgeClean(rack, victim).lives).toBeGreaterThanOrEqual(least);
  });
  const end = judgeClean(rack, victim);
  expect(end.lives, 'the victim was killed once').toBeLessThanOrEqual(undisturbedLives[victim] + 1);
  return end;
}

describe.concurrent('the kill table of reading again', () => {
  test.for(rowsOf(proofBoundaries))(
    'kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim }) => {
      const crash = { name, occurrence, victim };
      const rack = await Rack.start({ machines: [machine], crash, goal: HostGoal.MANAGEABLE });
      try {
        await readAgainAtOnce(rack);
        await cleanOnce(rack);
        const { formats, left } = await judgedAfterOneKill(rack, victim, name);
        expect(left).toEqual([]);
        expect({ formats, ...(await documentsOf(rack)) }).toEqual(proofEnd);
      } finally {
        await rack.stop();
      }
    },
  );
});

describe.concurrent('the kill table of a disk whose data comes back', () => {
  test.for(rowsOf(revocationBoundaries))(
    'kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim }) => {
      const crash = { name, occurrence, victim };
      const machines = [forgetfulMachine];
      const rack = await Rack.start({ machines, crash, goal: HostGoal.MANAGEABLE });
      try {
        await cleanOnce(rack);
        const { status } = await readAgainInVain(rack);
        expect(status?.run?.error?.type).toBe(FailureType.DATA_RETURNED);
        expect(status?.dirty).toBe(true);
        const { formats, left } = await judgedAfterOneKill(rack, victim, name);
        expect(left).toEqual(['vda']);
        expect({ formats, ...(await documentsOf(rack)) }).toEqual(revocationEnd);
      } finally {
        await rack.stop();
      }
    },
  );
});
