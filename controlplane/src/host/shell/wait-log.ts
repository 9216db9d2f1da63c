/** Logs what a host waits for, in the words of its explanation. */
import type { HostId, store } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { waitOf } from '../explain/explain.ts';
import { activeRun } from '../pass/pass.ts';
import type { HostSnapshot } from '../pass/types.ts';

/**
 * One line when a host begins a wait, and none while it continues: a run that repeatedly waits for
 * the same thing is logged once.
 */
export class WaitLog {
  readonly #log: Log;
  readonly #logged = new Map<HostId, string>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Notes a host that was written. */
  note(hostId: HostId, record: store.HostRecord, snapshot: HostSnapshot): void {
    const { headline, blocker } = waitOf(record, snapshot);
    const { status } = record.host ?? {};
    if (blocker === '') {
      if (status === undefined || activeRun(status) === undefined) this.#logged.delete(hostId);
      return;
    }
    const wait = `${headline}: waits for ${blocker}`;
    if (this.#logged.get(hostId) === wait) return;
    this.#logged.set(hostId, wait);
    this.#log.info(
      { host: record.host?.name, operation: record.operation?.operation?.id, blocker },
      headline,
    );
  }

  /** The host does not exist any more. */
  drop(hostId: HostId): void {
    this.#logged.delete(hostId);
  }
}
