/**
 * The kill table's rows for reading again after a power cycle: each process is killed at each
 * boundary, and the clean ends once, with one document of each kind that is due.
 */
import { FailureType, HostGoal, PowerCycleCheck } from '@rackwright/messages';
import { afterAll, describe, expect, test } from 'vitest';
import { type Victim, victims } from './crash.ts';
import {
  type CleanEnd,
  cleanOnce,
  documentsOf,
  forgetfulMachine,
  judgeClean,
  machine,
  newRow,
  type Row,
  readAgainInVain,
} from './kill-clean.ts';
import { proofBoundaries, proofEnd, revocationBoundaries, revocationEnd } from './kill-table.ts';
import { eventually } from './rack.ts';
import { RackPool } from './rack-pool.ts';

const rowTimeoutMs = 600_000;
const racks = new RackPool({ goal: HostGoal.MANAGEABLE });

afterAll(() => racks.close());

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

async function readAgainAtOnce({ rack, machine: { plan } }: Row): Promise<void> {
  const cleaning = { powerCycleCheck: PowerCycleCheck.IMMEDIATE };
  await rack.clients.hosts.updateHost({
    host: { name: `hosts/${plan.name}`, spec: { cleaning } },
    updateMask: { paths: ['spec.cleaning.power_cycle_check'] },
  });
}

/** Waits for the next life of who was killed as all ended; answers what the disks say then. */
async function judgedAfterOneKill(row: Row, victim: Victim, name: string): Promise<CleanEnd> {
  const mayStayAway = victim === 'runner' && switchedOffNext.has(name);
  const least = undisturbedLives[victim] + (mayStayAway ? 0 : 1);
  await eventually(`life ${least} of the ${victim}`, () => {
    expect(judgeClean(row, victim).lives).toBeGreaterThanOrEqual(least);
  });
  const end = judgeClean(row, victim);
  expect(end.lives, 'the victim was killed once').toBeLessThanOrEqual(undisturbedLives[victim] + 1);
  return end;
}

describe.concurrent('the kill table of reading again', () => {
  test.for(rowsOf(proofBoundaries))(
    'a clean that reads again survives kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    ({ name, occurrence, victim }) =>
      racks.use(async (rack) => {
        const row = await newRow(rack, machine, { name, occurrence, victim });
        await readAgainAtOnce(row);
        await cleanOnce(row);
        const { formats, left } = await judgedAfterOneKill(row, victim, name);
        expect(left).toEqual([]);
        expect({ formats, ...(await documentsOf(row)) }).toEqual(proofEnd);
      }),
  );
});

describe.concurrent('the kill table of a disk whose data comes back', () => {
  test.for(rowsOf(revocationBoundaries))(
    'a clean whose disk has data come back survives kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    ({ name, occurrence, victim }) =>
      racks.use(async (rack) => {
        const row = await newRow(rack, forgetfulMachine, { name, occurrence, victim });
        await cleanOnce(row);
        const { status } = await readAgainInVain(row);
        expect(status?.run?.error?.type).toBe(FailureType.DATA_RETURNED);
        expect(status?.dirty).toBe(true);
        const { formats, left } = await judgedAfterOneKill(row, victim, name);
        expect(left).toEqual(['vda']);
        expect({ formats, ...(await documentsOf(row)) }).toEqual(revocationEnd);
      }),
  );
});
