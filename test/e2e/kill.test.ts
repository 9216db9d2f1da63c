import { HostGoal } from '@rackwright/api';
import { describe, expect, test } from 'vitest';
import { cleanOnce, judgeClean, machine } from './kill-clean.ts';
import { boundaries, killTable, victims } from './kill-table.ts';
import { Rack } from './rack.ts';

const rowTimeoutMs = 600_000;

const rows = boundaries.flatMap(({ name, occurrence }) =>
  victims.map((victim) => ({ name, occurrence, victim, expected: killTable[name][victim] })),
);

describe.concurrent('the kill table', () => {
  test.for(rows)(
    'kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim, expected }) => {
      const crash = { name, occurrence, victim };
      const rack = await Rack.start({ machines: [machine], crash, goal: HostGoal.MANAGEABLE });
      try {
        await cleanOnce(rack);
        const { lives, formats, left } = judgeClean(rack, victim);
        expect(lives, 'the victim was killed once and came back').toBe(2);
        expect(left).toEqual([]);
        expect(expected.formats).toContain(formats);
      } finally {
        await rack.stop();
      }
    },
  );
});
