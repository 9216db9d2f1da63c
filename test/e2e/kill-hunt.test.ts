/**
 * The kill table's row of an agent that dies while disks are verified, with delays drawn from a
 * seed: slow disks, a late restart, and programs that stall as they start. A runner comes back at
 * any moment of the agent's start, and no disk is erased twice. By hand with more seeds:
 *
 *     RACKWRIGHT_HUNT_RUNS=200 vitest run test/e2e/kill-hunt.test.ts
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { HostGoal } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cleanOnce, judgeClean, machineWith, onlyRow } from './kill-clean.ts';
import { Rack } from './rack.ts';

const runs = Number(process.env['RACKWRIGHT_HUNT_RUNS'] ?? 2);
const firstSeed = Number(process.env['RACKWRIGHT_HUNT_SEED'] ?? 1);
const rowTimeoutMs = 600_000;

const slowMs = fc.constantFrom(0, 0, 10, 100, 700);
/** The challenge is many small writes. */
const slowDisk = fc.record({
  write: fc.constantFrom(0, 0, 2, 15),
  discard: slowMs,
  format: slowMs,
});
/** A program is stopped so long after its start, and goes on so long after, milliseconds. */
const stall = fc.record({
  afterMs: fc.integer({ min: 0, max: 900 }),
  forMs: fc.constantFrom(0, 0, 50, 400, 1_500),
});
const delays = fc.record({
  boundary: fc.constantFrom('runner.verified', 'runner.verified', 'runner.erased'),
  occurrence: fc.constantFrom(1, 2),
  disks: fc.tuple(slowDisk, slowDisk),
  restartDelayMs: fc.constantFrom(0, 0, 200, 1_000, 4_000),
  agent: stall,
  controlplane: stall,
});
type Delays = typeof delays extends fc.Arbitrary<infer T> ? T : never;

describe.concurrent('an agent that dies at a disk, with delays', () => {
  for (let seed = firstSeed; seed < firstSeed + runs; seed += 1) {
    test(`each disk is erased once with the delays of seed ${seed}`, {
      timeout: rowTimeoutMs,
    }, async () => {
      const [drawn] = fc.sample(delays, { seed, numRuns: 1 });
      if (drawn === undefined) throw new Error('nothing was drawn');
      const text = `seed ${seed}: ${JSON.stringify(drawn)}`;
      const { boundary: name, occurrence, restartDelayMs, disks } = drawn;
      const rack = await Rack.start({
        machines: [machineWith([faultsOf(disks[0]), faultsOf(disks[1])])],
        crash: { name, occurrence, victim: 'agent' },
        goal: HostGoal.MANAGEABLE,
        restartDelayMs,
      });
      const ended = new AbortController();
      try {
        const stalls = stallAfterRestart(rack, drawn, ended.signal);
        await cleanOnce(onlyRow(rack));
        ended.abort();
        await stalls;
        const judged = judgeClean(onlyRow(rack), 'agent');
        const detail = `${text}\n${rack.logs()}`;
        expect(judged, detail).toEqual({ lives: 2, formats: 1, left: [] });
      } finally {
        ended.abort();
        await rack.stop();
      }
    });
  }
});

function faultsOf(slow: Readonly<Record<string, number>>): object[] {
  return Object.entries(slow)
    .filter(([, delayMs]) => delayMs > 0)
    .map(([operation, delayMs]) => ({ kind: 'slow', operation, delayMs }));
}

/** Once the agent has been started again, both programs stall for a while. */
async function stallAfterRestart(rack: Rack, drawn: Delays, signal: AbortSignal): Promise<void> {
  while (rack.starts.agent < 2 && !signal.aborted) await sleep(5);
  await Promise.all(
    (['agent', 'controlplane'] as const).map(async (role) => {
      await sleep(drawn[role].afterMs);
      if (drawn[role].forMs === 0) return;
      rack.signal(role, 'SIGSTOP');
      await sleep(drawn[role].forMs);
      rack.signal(role, 'SIGCONT');
    }),
  );
}
