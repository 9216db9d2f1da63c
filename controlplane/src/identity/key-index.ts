/**
 * Which rack each agent's key belongs to, or belonged to, so that nobody looks at all racks for it.
 *
 * Must not: be decided by alone. It may be a moment behind; the rack's own record says whether the
 * key is registered.
 */
import { type RackId, sha256Hex, type store as wire } from '@rackwright/messages';
import { hex, isJoined } from './enrolment.ts';

export class KeyIndex {
  readonly #registered = new Map<string, string>();
  readonly #past = new Map<string, string>();
  /** Keys in either of these, by rack. */
  readonly #ofRack = new Map<string, readonly string[]>();

  /** The rack's record as it is now; undefined: there is none. */
  note(rackId: RackId, record: wire.RackRecord | undefined): void {
    for (const key of this.#ofRack.get(rackId) ?? []) {
      for (const racks of [this.#registered, this.#past]) {
        if (racks.get(key) === rackId) racks.delete(key);
      }
    }
    this.#ofRack.delete(rackId);
    if (record === undefined) return;
    const past = record.revokedKeys.map(({ keySha256 }) => hex(keySha256));
    for (const key of past) this.#past.set(key, rackId);
    if (!isJoined(record)) return void (past.length > 0 && this.#ofRack.set(rackId, past));
    const registered = sha256Hex(record.agentPublicKey);
    this.#registered.set(registered, rackId);
    this.#ofRack.set(rackId, [...past, registered]);
  }

  /** The rack that the key is registered with, or else was; `keySha256` in lower-case hex. */
  rackOf(keySha256: string): string | undefined {
    return this.#registered.get(keySha256) ?? this.#past.get(keySha256);
  }
}
