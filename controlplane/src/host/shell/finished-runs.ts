/**
 * Runs that have ended get a record of their own: create-only, under a name that follows from the
 * host and the run's number.
 *
 * The rule, which holds under crashes and for two replicas:
 * 1. It is copied from a host's record that is durable and has the run ended, never from a decision
 *    that is still to be written: another replica, or the same one after a crash, may decide
 *    otherwise, or at another time, and what ended never changes again (H3). So whoever writes it
 *    writes the same, and one that exists says the same.
 * 2. The host's record keeps an ended run, as its present one or in `finished_runs`, until a write
 *    that begins after the run has its own record. So none is ever lost, and whoever looks for a
 *    run finds it in one of the two.
 *
 * Must not: take any away (the workflows' sweeper does).
 */
import { create } from '@bufbuild/protobuf';
import { type Host, type Run, RunPhase, store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { storeKey } from '@rackwright/store';
import { type RecordWriter, writeRecord } from '../../records/index.ts';

/** Hosts of which it is remembered how far their runs have been kept. */
const rememberedMax = 100_000;

export interface FinishedRunsParts extends RecordWriter {
  readonly log: Log;
  /** Told of each run whose record this replica has made. */
  readonly onRunEnded?: (run: Run, host: Pick<Host, 'name' | 'uid'>) => void;
}

export class FinishedRuns {
  readonly #deps: FinishedRunsParts;
  /** The newest run of a host, by uid, that has its record, as far as this replica knows. */
  readonly #kept = new Map<string, bigint>();

  constructor(deps: FinishedRunsParts) {
    this.#deps = deps;
  }

  /** Before `after` is written over `before`: what would be lost by that. Throws `unavailable`. */
  async keepBefore(before: wire.HostRecord, after: wire.HostRecord): Promise<void> {
    const present = after.host?.status?.run?.number;
    const isLost = ({ number }: Run) =>
      number !== present && !after.finishedRuns.some((run) => run.number === number);
    await this.#keep(before, endedRuns(before).filter(isLost));
  }

  /**
   * What a record that has just become durable says of runs that have ended. Whatever comes in
   * between is made good before the next write can lose them.
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
