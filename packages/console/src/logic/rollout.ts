/** How a rollout and its history are drawn: numbers for rectangles. Pure. */
import type { PoolHost } from '@rackwright/messages';

/** States of hosts in the order in which a rollout leads through them. */
const order = [
  'current',
  'kept',
  'out',
  'atGate',
  'waiting',
  'notReady',
  'unclaimed',
  'contested',
  'missing',
  'failed',
];

export interface StateCount {
  readonly state: string;
  readonly count: number;
}

/** Hosts by state, in the order of the rollout; unknown states come last. */
export function statesOf(hosts: readonly Pick<PoolHost, 'state'>[]): StateCount[] {
  const counts = new Map<string, number>();
  for (const { state } of hosts) counts.set(state, (counts.get(state) ?? 0) + 1);
  const rank = (state: string) => (order.includes(state) ? order.indexOf(state) : order.length);
  return [...counts]
    .map(([state, count]) => ({ state, count }))
    .sort((a, b) => rank(a.state) - rank(b.state) || (a.state < b.state ? -1 : 1));
}

export interface Share {
  readonly fromPercent: number;
  readonly percent: number;
}

/**
 * Shares of a bar, which fill it exactly; a count above 0 is never too small to be seen. All 0: no
 * share.
 */
export function sharesOf(counts: readonly number[], leastPercent = 1.5): Share[] {
  const sum = counts.reduce((all, each) => all + each, 0);
  if (sum === 0) return counts.map(() => ({ fromPercent: 0, percent: 0 }));
  const raised = counts.map((count) =>
    count === 0 ? 0 : Math.max(leastPercent, (count / sum) * 100),
  );
  const scale = 100 / raised.reduce((all, each) => all + each, 0);
  let fromPercent = 0;
  return raised.map((each) => {
    const share = { fromPercent, percent: each * scale };
    fromPercent += share.percent;
    return share;
  });
}
