/** The shared parts of every command on pools. */
import { type Pool, PoolSchema, PoolService } from '@rackwright/messages';
import type { Client } from '@rackwright/rpc';
import type { CommandIo } from '../../command-io.ts';
import type { SharedFlags } from '../../flags.ts';
import { deployHistoryColumns, poolFields, slotColumns } from '../../output/pool.ts';
import { isForPrograms, printAs, printFields, printLines, printTable } from '../../output/show.ts';
import { callsOf } from '../frame/calls.ts';

export type PoolClient = Client<typeof PoolService>;

/** Runs `work` with a client of PoolService. */
export const withPools = callsOf(PoolService);

/** Prints one pool, with who has a slot and the newest of its history. */
export function showPool(io: CommandIo, { output }: SharedFlags, pool: Pool): void {
  if (isForPrograms(output)) {
    printAs(io, output, PoolSchema, pool);
    return;
  }
  printFields(io, poolFields(pool, io.clock));
  const { slots = [], deployHistory = [] } = pool.status ?? {};
  if (slots.length > 0) {
    printLines(io, ['']);
    printTable(io, output, slotColumns(io.clock), slots);
  }
  if (deployHistory.length === 0) return;
  printLines(io, ['']);
  printTable(io, output, deployHistoryColumns(io.clock), deployHistory);
}
