/**
 * The deploy history: a query over the ledger that no decision depends on. Pure.
 *
 * Invariant: an entry of the ledger that exists twice, comes out of order, or was merged into one
 * for many (`ledger-folding.ts`) changes nothing.
 */
import { create } from '@bufbuild/protobuf';
import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type DeployHistoryEntry,
  DeployHistoryEntrySchema,
  type store as wire,
} from '@rackwright/messages';
import { compare } from '../facts/members.ts';
import type { SeenHost } from '../facts/seen.ts';

/** Order of the history, newest first; `a` and `b` have different digests. */
export function compareEntries(a: DeployHistoryEntry, b: DeployHistoryEntry): number {
  return timeOf(b) - timeOf(a) || compare(a.digest, b.digest);
}

/** Entries that a pool shows of its history by default. */
export const historyLimitDefault = 3;

/** The requested part of the history. */
export interface HistoryView {
  /** The number of shown entries; more, when hosts run them now or one is the target. */
  readonly limit: number;
  /** Digest of the target; empty: there is none. */
  readonly target: string;
}

/** Grouped by digest, newest first. `members` are the present hosts of the pool. */
export function historyOf(
  ledger: readonly wire.DeploymentRecord[],
  members: readonly Pick<SeenHost, 'digest'>[],
  { limit, target }: HistoryView,
): DeployHistoryEntry[] {
  const groups = Map.groupBy(ledger, ({ digest }) => digest);
  const entries = [...groups].map(([digest, group]) => entryOf(digest, group, members));
  const sorted = entries.toSorted(compareEntries);
  return sorted.filter(
    ({ digest, currentHosts }, index) => index < limit || currentHosts > 0 || digest === target,
  );
}

function entryOf(
  digest: string,
  group: readonly wire.DeploymentRecord[],
  members: readonly Pick<SeenHost, 'digest'>[],
): DeployHistoryEntry {
  const byTime = group.toSorted((a, b) => endOf(a) - endOf(b) || compare(a.hostUid, b.hostUid));
  const last = byTime.at(-1)?.endTime;
  return create(DeployHistoryEntrySchema, {
    digest,
    version: byTime.find(({ version }) => version !== '')?.version ?? '',
    hostCount: hostsOf(group),
    currentHosts: members.filter((host) => host.digest === digest).length,
    ...(last === undefined ? {} : { lastDeployed: last }),
  });
}

/** The number of different hosts, also from entries for many. */
function hostsOf(group: readonly wire.DeploymentRecord[]): number {
  const uids = new Set(group.flatMap(({ foldedHostUids }) => foldedHostUids));
  for (const { hostUid } of group) if (hostUid !== '') uids.add(hostUid);
  return group.reduce((count, { foldedGoneHosts }) => count + foldedGoneHosts, uids.size);
}

function endOf({ endTime }: wire.DeploymentRecord): number {
  return endTime === undefined ? 0 : timestampMs(endTime);
}

function timeOf({ lastDeployed }: DeployHistoryEntry): number {
  return lastDeployed === undefined ? 0 : timestampMs(lastDeployed);
}
