/**
 * Keeps a pool's ledger small: what many old entries say of a digest together is one entry, from
 * which the history comes out as it did from them. Pure.
 *
 *  L1 An entry goes only once the entry for many that has taken it in is durable. What stands in
 *     both counts once, so that a crash between, another replica or an entry that is written once
 *     more change no count.
 *  L2 A host that is gone is kept as a number, once no entry of it is left: it never comes back.
 *  L3 Nothing is left of a digest that nobody was brought to for so long, whose hosts are all gone,
 *     and that nobody wants or runs.
 */
import { create } from '@bufbuild/protobuf';
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { store as wire } from '@rackwright/messages';
import { type Revision, storeKey } from '@rackwright/store';
import { compare } from '../facts/members.ts';

/** Entries of a pool that stay as they were written; more are taken in, however young. */
export const wholeEntriesMax = 1_000;
/** Uids in an entry for many: a record is bounded. With more, the rest stays as it is. */
const uidsMax = 4_000;

export interface LedgerEntry {
  readonly key: string;
  readonly revision: Revision;
  readonly record: wire.DeploymentRecord;
}

/** What decides how long entries stay. */
export interface LedgerFacts {
  /** What ended before may be taken in. */
  readonly beforeMs: number;
  /** Uids of all hosts that there are, read after the ledger. */
  readonly hostUids: ReadonlySet<string>;
  /** Digests that pools want or hosts run. */
  readonly digestsInUse: ReadonlySet<string>;
  /** Entries that may go at once. */
  readonly removalsMax: number;
}

/** First what is to be written, if anything is; then what goes (L1). */
export interface LedgerFold {
  readonly write?: {
    readonly key: string;
    readonly record: wire.DeploymentRecord;
    readonly expected: Revision | 'absent';
  };
  readonly removals: readonly Pick<LedgerEntry, 'key' | 'revision'>[];
}

/** Whether it stands for many. */
function isOfMany({ record }: LedgerEntry): boolean {
  return record.hostUid === '';
}

/** What is to be done with the ledger of one pool. */
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
  /** Those that are taken in, oldest first. */
  readonly old: readonly LedgerEntry[];
  /** All that stand for one deployment. */
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
