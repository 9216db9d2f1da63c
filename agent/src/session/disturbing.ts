/** What an operation does to the readings of power beside it. */
import type { Executor, PowerReadings } from './executor.ts';

/** A power change by an operation needs no report, and it may happen during a poll. */
export function withDisturbanceNotes(executor: Executor, power: PowerReadings): Executor {
  return {
    ...executor,
    execute: async (operation, context) => {
      power.noteDisturbance(operation.hostUid);
      try {
        return await executor.execute(operation, context);
      } finally {
        power.noteDisturbance(operation.hostUid);
      }
    },
  };
}
