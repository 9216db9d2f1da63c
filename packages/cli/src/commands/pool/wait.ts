/** `--wait` of pools: until all hosts are on their image. */
import {
  isPoolBecause,
  WatchPoolsResponse_Kind as Kind,
  type Pool,
  poolCondition,
} from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { GoalUnreachable } from '../../failure.ts';
import { poolLine } from '../../output/pool.ts';
import type { WorkProgress } from '../../output/progress.ts';
import { progressView } from '../frame/progress.ts';
import { watchResumed } from '../frame/resumed-watch.ts';
import { checkInterrupted, type WaitFlags } from '../frame/wait.ts';
import type { PoolClient } from './client.ts';
import { isCurrent } from './watch.ts';

/**
 * With `--wait` the pool once its hosts are on its image; otherwise the answer. Rejects with
 * `GoalUnreachable` when that is not reached without help, with `WaitedTooLong` or `Interrupted`.
 */
export async function poolDone(
  io: CommandIo,
  pools: PoolClient,
  { wait, timeout }: WaitFlags,
  answered: Pool,
): Promise<Pool> {
  if (!wait) return answered;
  const { name } = answered;
  const explain = `see \`rackwright pool explain ${name.replace('pools/', '')}\``;
  const view = progressView(io);
  const beganMs = io.clock.nowMs();
  let seen = answered;
  const see = () => workOf(seen, io.clock.nowMs() - beganMs);
  const late = () => `waited ${timeout} s for ${name}: ${poolLine(seen)}; it goes on; ${explain}`;
  try {
    view.show(see);
    await watchResumed(
      io,
      { timeoutSeconds: timeout, late },
      (position, options) => pools.watchPools({ name, position }, options),
      ({ kind, pool }) => {
        if (pool === undefined) return false;
        if (kind === Kind.DELETED) throw new GoalUnreachable(`${name} was deleted`);
        seen = pool;
        view.show(see);
        return isDone(pool, explain);
      },
    );
  } finally {
    view.end();
  }
  checkInterrupted(io, `rackwright pool watch ${name.replace('pools/', '')}`);
  return seen;
}

function isDone(pool: Pool, explain: string): boolean {
  const { name, status } = pool;
  if (isPoolBecause(status, 'UpToDate', 'WaitingForApproval', 'Paused')) {
    const message = poolCondition(status, 'UpToDate')?.message ?? '';
    throw new GoalUnreachable(`${name} waits for a person: ${message}; ${explain}`);
  }
  return isCurrent(pool);
}

function workOf(pool: Pool, elapsedMs: number): WorkProgress {
  const { hostCount = 0, currentCount = 0 } = pool.status ?? {};
  return {
    text: poolLine(pool),
    percent: hostCount === 0 ? undefined : Math.floor((currentCount / hostCount) * 100),
    elapsedMs,
    leftMs: undefined,
  };
}
