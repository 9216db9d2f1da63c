/** Burn-ins on machines that lie, by a clock that nobody waits for. */

import type { BurnIn } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import type { BurnInMachine } from '../machine/burn-in-machine.ts';
import type { StepContext, StepResult } from '../steps/step.ts';
import { machine } from '../steps/steps.fixture.ts';
import { knownResults } from './known-results.ts';

const mib = 1024 * 1024;

const waitMsLeast = 300;

/** Advances to the next awaited moment, and by a minimum. */
export function quickClock(): Clock {
  let nowMs = 1_700_000_000_000;
  return {
    nowMs: () => nowMs,
    suspendAwareMs: () => nowMs,
    after: (delayMs, callback) => {
      const timer = setImmediate(() => {
        nowMs += Math.max(delayMs, waitMsLeast);
        callback();
      });
      return () => clearImmediate(timer);
    },
  };
}

/** Two threads that calculate the known results, and memory for one block. */
export const sound: BurnInMachine = {
  threads: 2,
  calculate: (told) => {
    setImmediate(() => told(right()));
    return { stop: async () => {} };
  },
  availableBytes: async () => 320 * mib,
  allocate: (bytes) => new Uint8Array(bytes),
  celsius: async () => 41,
  memoryErrors: async () => undefined,
  networkCards: async () => [],
};

export function right(): string[] {
  return knownResults.map(([, result]) => result);
}

/** What a step runs with on such a machine. */
export function on(change: Partial<BurnInMachine>, more: Partial<StepContext> = {}) {
  return { clock: quickClock(), machine: { ...machine, burnIn: { ...sound, ...change } }, ...more };
}

/** The kept result. */
export function keptOf({ result }: StepResult): BurnIn | undefined {
  return 'observations' in result ? result.observations?.burnIn : undefined;
}
