/**
 * The present or former rack of each agent's key, so that no lookup reads all racks.
 *
 * Must not: decide alone. It may lag by a moment; the rack's own record says whether the key is
 * registered.
 */
import { type RackId, sha256Hex, type store as wire } from '@rackwright/messages';
import { hex, isJoined } from './enrolment.ts';

export class AgentKeyIndex {
  readonly #registered = new Map<string, RackId>();
  readonly #past = new Map<string, RackId>();
  /** The keys of each rack in these maps. */
  readonly #ofRack = new Map<RackId, readonly string[]>();

  /** The rack's present record; undefined: it does not exist. */
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

  /** The rack with which the key is registered, or was; `keySha256` in lower-case hex. */
  rackOf(keySha256: string): RackId | undefined {
    return this.#registered.get(keySha256) ?? this.#past.get(keySha256);
  }
}
