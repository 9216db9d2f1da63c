/**
 * The kill table's rows for reading again after a power cycle: each process is killed at each
 * boundary, and the clean ends once, with one document of each kind that is due.
 */
import { ErasureDocumentKind, HostGoal, PowerCycleCheck } from '@rackwright/api';
import { describe, expect, test } from 'vitest';
import { cleanOnce, judgeClean, machine } from './kill-clean.ts';
import { proofBoundaries, proofEnd, victims } from './kill-table.ts';
import { Rack } from './rack.ts';

const rowTimeoutMs = 600_000;
/** A clean of two boots starts two runners. */
const undisturbedLives = { controlplane: 1, agent: 1, runner: 2 } as const;
/** Who is killed as the host is switched off next is not always started again. */
const mayStayAway = new Set(['runner at cp.addendumStored']);

const rows = proofBoundaries.flatMap((boundary) =>
  victims.map((victim) => ({ ...boundary, victim })),
);

async function readAgainAtOnce({ clients }: Rack): Promise<void> {
  const cleaning = { powerCycleCheck: PowerCycleCheck.IMMEDIATE };
  await clients.hosts.updateHost({
    host: { name: 'hosts/h1', spec: { cleaning } },
    updateMask: { paths: ['spec.cleaning.power_cycle_check'] },
  });
}

async function documentsOf({ clients }: Rack) {
  const { erasureDocuments } = await clients.erasures.listErasureDocuments({ host: 'hosts/h1' });
  const count = (kind: ErasureDocumentKind) =>
    erasureDocuments.filter((document) => document.kind === kind).length;
  return {
    manifests: count(ErasureDocumentKind.MANIFEST),
    addenda: count(ErasureDocumentKind.ADDENDUM),
    revocations: count(ErasureDocumentKind.REVOCATION),
  };
}

describe.concurrent('the kill table of reading again', () => {
  test.for(rows)(
    'kill -9 of the $victim at $name',
    { timeout: rowTimeoutMs },
    async ({ name, occurrence, victim }) => {
      const crash = { name, occurrence, victim };
      const rack = await Rack.start({ machines: [machine], crash, goal: HostGoal.MANAGEABLE });
      try {
        await readAgainAtOnce(rack);
        await cleanOnce(rack);
        const { lives, formats, left } = judgeClean(rack, victim);
        const least = undisturbedLives[victim] + (mayStayAway.has(`${victim} at ${name}`) ? 0 : 1);
        expect(lives, 'the victim was killed once').toBeGreaterThanOrEqual(least);
        expect(lives).toBeLessThanOrEqual(undisturbedLives[victim] + 1);
        expect(left).toEqual([]);
        expect({ formats, ...(await documentsOf(rack)) }).toEqual(proofEnd);
      } finally {
        await rack.stop();
      }
    },
  );
});
