/**
 * Keeps a pool's ledger small: many old entries of one digest are merged into one entry, which
 * gives the same history. Pure.
 *
 *  L1 An entry is removed only once the merged entry is durable. A deployment in both counts once.
 *     So a crash in between, another replica or a repeated write changes no count.
 *  L2 A removed host is kept only as a number, once no entry of it is left: it never returns.
 *  L3 A digest is dropped entirely when it has not been deployed for the retention time, all its
 *     hosts are removed, and no pool or host uses it.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { type HostUid, store as wire } from '@rackwright/messages';
import { type StoreRevision, storeKey } from '@rackwright/store';
import { compare } from '../facts/members.ts';

/** Entries of a pool that stay as they were written; further ones are merged at any age. */
export const wholeEntriesMax = 1_000;
/** The most uids in a merged entry: a record is bounded. Further entries stay unmerged. */
const uidsMax = 4_000;

export interface LedgerEntry {
  readonly key: string;
  readonly revision: StoreRevision;
  readonly record: wire.DeploymentRecord;
}

/** The inputs that decide how long entries stay. */
export interface LedgerFacts {
  /** Entries that ended before this may be merged. */
  readonly beforeMs: number;
  /** Uids of all existing hosts, read after the ledger. */
  readonly hostUids: ReadonlySet<HostUid>;
  /** Digests that pools want or hosts run. */
  readonly digestsInUse: ReadonlySet<string>;
  /** The most entries that are removed at once. */
  readonly removalsMax: number;
}

/** First the write, if any; then the removals (L1). */
export interface LedgerFold {
  readonly write?: {
    readonly key: string;
    readonly record: wire.DeploymentRecord;
    readonly expected: StoreRevision | 'absent';
  };
  readonly removals: readonly Pick<LedgerEntry, 'key' | 'revision'>[];
}

/** Whether it is a merged entry. */
function isOfMany({ record }: LedgerEntry): boolean {
  return record.hostUid === '';
}

/** The changes for the ledger of one pool. */
export function foldsOf(ledger: readonly LedgerEntry[], facts: LedgerFacts): LedgerFold[] {
  const whole = ledger.filter((entry) => !isOfMany(entry)).toSorted(byTime);
  const young = Math.max(0, whole.length - wholeEntriesMax);
  const old = whole
    .filter(({ record }, index) => index < young || endOf(record) < facts.beforeMs)
    .slice(0, facts.removalsMax);
  const taken = Map.groupBy(old, ({ record }) => record.digest);
  const left = Map.groupBy(whole, ({ record }) => record.digest);
  const many = new Map(ledger.filter(isOfMany).map((entry) => [entry.record.digest, entry]));
  const digests = new Set([...taken.keys(), ...many.keys()]);
  return [...digests].flatMap((digest) => {
    const its = {
      many: many.get(digest),
      old: taken.get(digest) ?? [],
      all: left.get(digest) ?? [],
    };
    return foldOf(its, facts) ?? [];
  });
}

interface OfDigest {
  readonly many: LedgerEntry | undefined;
  /** The entries to merge, oldest first. */
  readonly old: readonly LedgerEntry[];
  /** All entries of one deployment. */
  readonly all: readonly LedgerEntry[];
}

function foldOf({ many, old, all }: OfDigest, facts: LedgerFacts): LedgerFold | undefined {
  const known = new Set(many?.record.foldedHostUids);
  const here = new Set(all.map(({ record }) => record.hostUid));
  const gone = [...known].filter((uid) => !facts.hostUids.has(uid) && !here.has(uid));
  const uids = new Set([...known, ...old.map(({ record }) => record.hostUid)]);
  for (const uid of gone) uids.delete(uid);
  if (many !== undefined && all.length === 0 && uids.size === 0 && isOver(many, facts)) {
    return { removals: [many] };
  }
  if (uids.size > uidsMax || (old.length === 0 && gone.length === 0)) return undefined;
  const parts = [...(many === undefined ? [] : [many]), ...old].map(({ record }) => record);
  const [first] = parts;
  if (first === undefined) return undefined;
  const hex = first.digest.replace(/^sha256:/, '');
  const record = create(wire.DeploymentRecordSchema, {
    ...{ pool: first.pool, poolUid: first.poolUid, digest: first.digest },
    version: parts.find(({ version }) => version !== '')?.version ?? '',
    ...lastEnd(parts),
    foldedHostUids: [...uids].toSorted(compare),
    foldedGoneHosts: (many?.record.foldedGoneHosts ?? 0) + gone.length,
  });
  const key = many?.key ?? storeKey('deployments', first.poolUid, hex, '0');
  return { write: { key, record, expected: many?.revision ?? 'absent' }, removals: old };
}

/** L3. */
function isOver({ record }: LedgerEntry, { beforeMs, digestsInUse }: LedgerFacts): boolean {
  return endOf(record) < beforeMs && !digestsInUse.has(record.digest);
}

function lastEnd(parts: readonly wire.DeploymentRecord[]): { readonly endTime?: Timestamp } {
  const last = parts.reduce((a, b) => (endOf(b) > endOf(a) ? b : a));
  return last.endTime === undefined ? {} : { endTime: last.endTime };
}

function endOf({ endTime }: wire.DeploymentRecord): number {
  return endTime === undefined ? 0 : timestampMs(endTime);
}

function byTime(a: LedgerEntry, b: LedgerEntry): number {
  return endOf(a.record) - endOf(b.record) || compare(a.key, b.key);
}
