/**
 * Finished runs get a record of their own: create-only, under a name that follows from the host and
 * the run's number.
 *
 * The rule, which holds under crashes and for two replicas:
 * 1. The copy is made from a durable host record with the finished run, never from a decision that
 *    is not written yet: another replica, or the same one after a crash, may decide otherwise. A
 *    finished run never changes again (H3). So every writer writes the same, and an existing record
 *    is equal.
 * 2. The host's record keeps a finished run, as its present one or in `finished_runs`, until a
 *    write that begins after the run has its own record. So no run is lost, and a reader finds it
 *    in one of the two.
 *
 * Must not: remove any (the workflows' sweeper does).
 */
import { create } from '@bufbuild/protobuf';
import { type Host, type HostUid, type Run, RunPhase, store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { type RecordWriter, writeRecord } from '../../records/index.ts';

/** The most hosts in the cache of stored runs. */
const rememberedMax = 100_000;

export interface FinishedRunsParts extends RecordWriter {
  readonly log: Log;
  /** Called for each run whose record this replica has made. */
  readonly onRunEnded?: (run: Run, host: Pick<Host, 'name' | 'uid'>) => void;
}

export class FinishedRuns {
  readonly #deps: FinishedRunsParts;
  /** The newest run of each host, by uid, that has its record, as far as this replica knows. */
  readonly #kept = new Map<HostUid, bigint>();

  constructor(deps: FinishedRunsParts) {
    this.#deps = deps;
  }

  /** Before `after` replaces `before`: stores the runs that would be lost. Throws `unavailable`. */
  async keepBefore(before: wire.HostRecord, after: wire.HostRecord): Promise<void> {
    const present = after.host?.status?.run?.number;
    const isLost = ({ number }: Run) =>
      number !== present && !after.finishedRuns.some((run) => run.number === number);
    await this.#keep(before, endedRuns(before).filter(isLost));
  }

  /**
   * Stores finished runs of a record that has just become durable. If that is interrupted, the next
   * write stores them before it can lose them.
   */
  async keepAfter(record: wire.HostRecord): Promise<void> {
    try {
      await this.#keep(record, endedRuns(record));
    } catch (error) {
      const host = record.host?.name;
      this.#deps.log.warn({ host }, 'an ended run is kept later', error);
    }
  }

  async #keep({ host }: wire.HostRecord, runs: readonly Run[]): Promise<void> {
    const { name = '', uid = '' } = host ?? {};
    for (const run of runs) {
      if (run.number <= (this.#kept.get(uid) ?? 0n)) continue;
      const record = create(wire.FinishedRunRecordSchema, { host: name, hostUid: uid, run });
      const key = storeKey('runs', uid, String(run.number));
      const schema = wire.FinishedRunRecordSchema;
      const written = await writeRecord(this.#deps, schema, key, record, 'absent');
      if (written.kind === 'ok') this.#deps.onRunEnded?.(run, { name, uid });
      if (this.#kept.size >= rememberedMax) this.#kept.clear();
      this.#kept.set(uid, run.number);
    }
  }
}

/** Oldest first. */
function endedRuns({ host, finishedRuns }: wire.HostRecord): Run[] {
  const present = host?.status?.run;
  return [...finishedRuns, ...(present?.phase === RunPhase.ENDED ? [present] : [])];
}
