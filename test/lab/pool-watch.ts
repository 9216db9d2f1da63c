/** What the control plane says of pools, as it says it: `rackwright pool watch -o json`. */
import { type PoolConditionType, poolCondition } from '@rackwright/messages';
import { followLines } from './host-watch.ts';
import { logTail, until } from './processes.ts';
import type { Stack } from './stack.ts';

/** A pool, as the API shows it in JSON; what is empty is absent. */
export interface PoolView {
  readonly name: string;
  readonly status?: {
    readonly target?: { readonly digest: string; readonly version?: string };
    readonly hostCount?: number;
    readonly currentCount?: number;
    readonly unavailableCount?: number;
    readonly unavailableMax?: number;
    readonly failedCount?: number;
    readonly conditions?: readonly {
      readonly type: string;
      readonly status?: boolean;
      readonly reason: string;
      readonly message: string;
    }[];
    readonly slots?: readonly { readonly host: string; readonly state: string }[];
    readonly deployHistory?: readonly HistoryView[];
  };
}

/** A line of the deploy history. */
export interface HistoryView {
  readonly digest: string;
  readonly version?: string;
  readonly hostCount?: number;
  readonly lastDeployed?: string;
  readonly currentHosts?: number;
}

/** All that was seen of one pool so far. */
export interface PoolWatch {
  history(): readonly PoolView[];
  /** Waits for a view, the latest one included; throws with the last view. */
  waitFor(what: string, limitMs: number, accept: (pool: PoolView) => boolean): Promise<PoolView>;
}

/** Starts the watch of a pool. */
export function watchPool(stack: Stack, pool: string): PoolWatch {
  const watcher = stack.startCli(`pool-watch-${pool}`, ['pool', 'watch', pool, '-o', 'json']);
  const views: PoolView[] = [];
  const readNew = followLines(watcher.logFile);
  const history = (): readonly PoolView[] => {
    for (const line of readNew()) {
      if (!line.startsWith('{')) continue; // words of the program
      const { pool: view } = JSON.parse(line) as { pool?: PoolView };
      if (view !== undefined) views.push(view);
    }
    return views;
  };
  return {
    history,
    waitFor: async (what, limitMs, accept) => {
      const from = Math.max(0, history().length - 1);
      let found: PoolView | undefined;
      const arrived = (): boolean => {
        found = history().slice(from).find(accept);
        if (found === undefined && !watcher.isRunning()) {
          throw new Error(`the watch of the pool has ended: ${logTail(watcher.logFile)}`);
        }
        return found !== undefined;
      };
      try {
        await until(what, limitMs, arrived);
      } catch (error) {
        const message = error instanceof Error ? error.message : '';
        throw new Error(`${message}; last: ${JSON.stringify(views.at(-1)?.status)}`, {
          cause: error,
        });
      }
      if (found === undefined) throw new Error('unreachable: it has arrived');
      return found;
    },
  };
}

/** The condition of this type, in the words that a person reads. */
export function conditionOf({ status }: PoolView, type: PoolConditionType) {
  return poolCondition(status, type);
}
