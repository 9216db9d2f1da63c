/**
 * R10: each host of a rack takes in what its agent's Hello reports of it. When a host cannot take
 * it in, that is retried before the agent's next message counts: the agent does not send it again.
 */
import type { agent, RackId } from '@rackwright/messages';
import type { Clock, Log } from '@rackwright/platform';
import type { Hosts } from '../../host/index.ts';
import { isStoreUnavailable } from '../../records/index.ts';
import { runnerFact } from '../base/messages.ts';

export interface FoldingDependencies {
  readonly hosts: Pick<Hosts, 'hello' | 'report' | 'hostIdOfUid' | 'hostIdsOfRack'>;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often the fold into one host is tried. The rack waits for it, much shorter than a lease. */
const triesMax = 4;
const retryDelayMs = 1_000;

/**
 * `storeAway`: the store was unavailable for some host; only another Hello repairs that. A host
 * that fails for another reason is given up: the rack keeps its session.
 */
export async function foldHello(
  deps: FoldingDependencies,
  rackId: RackId,
  hello: agent.Hello,
  isLive: () => boolean,
): Promise<'told' | 'storeAway'> {
  let left = foldsOfHello(deps, rackId, hello);
  for (let tries = 1; left.length > 0; tries++) {
    const outcomes = await Promise.allSettled(left.map((fold) => fold()));
    const failed = left.filter((_, index) => outcomes[index]?.status === 'rejected');
    const errors = outcomes.flatMap((outcome) =>
      outcome.status === 'rejected' ? [outcome.reason] : [],
    );
    if (errors.length === 0) break;
    const fields = { rack: rackId, hosts: failed.length, tries };
    deps.log.warn(fields, 'hosts could not take in a Hello', errors[0]);
    if (errors.some(isStoreUnavailable)) return 'storeAway';
    if (tries >= triesMax || !isLive()) break;
    left = failed;
    await new Promise<void>((resolve) => deps.clock.after(retryDelayMs, resolve));
  }
  return 'told';
}

function foldsOfHello(
  { hosts }: FoldingDependencies,
  rackId: RackId,
  hello: agent.Hello,
): (() => Promise<unknown>)[] {
  const { journal, runners, operations, grants } = hello;
  if (journal === undefined) return [];
  const all: (() => Promise<unknown>)[] = [];
  for (const ready of runners) {
    const hostId = hosts.hostIdOfUid(ready.hostUid, rackId);
    if (hostId !== undefined) all.push(() => hosts.report(hostId, runnerFact(ready)));
  }
  const granted = grants.map(({ operationId }) => operationId);
  for (const hostId of hosts.hostIdsOfRack(rackId)) {
    const listed = operations.filter(({ hostUid }) => {
      return hosts.hostIdOfUid(hostUid, rackId) === hostId;
    });
    all.push(() => hosts.hello(hostId, journal, listed, granted));
  }
  return all;
}
