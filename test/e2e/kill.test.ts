import { HostGoal } from '@rackwright/messages';
import { afterAll, describe, expect, test } from 'vitest';
import { victims } from './crash.ts';
import { cleanOnce, judgeClean, machine, newRow } from './kill-clean.ts';
import { boundaries, killTable } from './kill-table.ts';
import { RackPool } from './rack-pool.ts';

const rowTimeoutMs = 600_000;
const racks = new RackPool({ goal: HostGoal.MANAGEABLE });

afterAll(() => racks.close());

const rows = boundaries.flatMap(({ name, occurrence }) =>
  victims.map((victim) => ({ name, occurrence, victim, expected: killTable[name][victim] })),
);

describe.concurrent('the kill table', () => {
  test.for(rows)(
    'a clean survives kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    ({ name, occurrence, victim, expected }) =>
      racks.use(async (rack) => {
        const row = await newRow(rack, machine, { name, occurrence, victim });
        await cleanOnce(row);
        const { lives, formats, left } = judgeClean(row, victim);
        expect(lives, 'the victim was killed once and came back').toBe(2);
        expect(left).toEqual([]);
        expect(expected.formats).toContain(formats);
      }),
  );
});
