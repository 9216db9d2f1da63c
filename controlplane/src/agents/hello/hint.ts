/**
 * The hint in the rack's record that its session is with this replica (R6). Other replicas trust it
 * only for a while, so it is renewed while the session is valid and removed when the session ends.
 */
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import type { RackId, store as wire } from '@rackwright/messages';
import type { SessionDependencies } from '../base/dependencies.ts';
import { updateRack } from '../base/update-rack.ts';
import { hintIntervalMs } from './elsewhere.ts';

export class SessionHint {
  readonly #deps: SessionDependencies;
  readonly #rackId: RackId;
  #putMs = 0;

  constructor(deps: SessionDependencies, rackId: RackId) {
    this.#deps = deps;
    this.#rackId = rackId;
  }

  /** Puts the hint into a record that is about to be written. */
  put(record: wire.RackRecord): void {
    const nowMs = this.#deps.clock.nowMs();
    record.sessionReplica = this.#deps.replicaId;
    record.sessionTime = timestampFromMs(nowMs);
    this.#putMs = nowMs;
  }

  /**
   * Writes the hint again when it is about to expire, or when the record has lost it. Otherwise two
   * replicas would overwrite each other's view of whether the agent is connected.
   */
  async renew(kept: wire.RackRecord | undefined): Promise<void> {
    const isLost = kept?.sessionReplica === '';
    if (!isLost && this.#deps.clock.nowMs() - this.#putMs < hintIntervalMs) return;
    await updateRack(this.#deps, this.#rackId, (record) => {
      const { sessionReplica } = record;
      // Another replica may have taken the session since the record was read.
      if (sessionReplica === '' || sessionReplica === this.#deps.replicaId) this.put(record);
    });
  }

  /** Lets every replica report that the agent is away; its last message came at `lastMessageMs`. */
  async withdraw(lastMessageMs: () => number): Promise<void> {
    const { log, registry } = this.#deps;
    try {
      await updateRack(this.#deps, this.#rackId, (record, status) => {
        status.lastSeenTime = timestampFromMs(lastMessageMs());
        const replaced = registry.sessionOf(this.#rackId) !== undefined;
        if (this.#isIn(record) && !replaced) record.sessionReplica = '';
      });
    } catch (error) {
      log.warn({ rack: this.#rackId }, 'the session hint stays', error);
    }
  }

  /** Whether the record has the hint of this session, and not that of its successor. */
  #isIn({ sessionReplica, sessionTime }: wire.RackRecord): boolean {
    if (sessionReplica !== this.#deps.replicaId || sessionTime === undefined) return false;
    return timestampMs(sessionTime) === this.#putMs;
  }
}
