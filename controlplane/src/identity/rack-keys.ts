/**
 * The present key of each rack's agent, updated from the store for changes of any replica.
 *
 * Invariants:
 * 1. An attended session is notified, once, when its key is no longer the rack's: revoked,
 *    replaced, or the rack deleted. Messages need no check of their own.
 * 2. A change between a caller's read of the record and `attend` is not missed: `attend` first
 *    reads it again.
 * 3. The rack of a key is found without a read of other racks; that of a key that enrolled here, at
 *    once.
 * 4. A rack whose record cannot be decoded keeps no session, and its known keys remain its own.
 */
import { type RackId, sha256Hex, store as wire } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import { type Entry, type StateStore, storeKey } from '@rackwright/store';
import { type FollowedValues, followValues, type StoreFollower } from '../following/index.ts';
import { readableRecordOf, readRecord } from '../records/index.ts';
import { type KeyRefusal, type RefusedKey, whyNotAgent } from './enrolment.ts';
import { AgentKeyIndex } from './key-index.ts';
import { type RackTrust, rackTrust } from './rotation.ts';

/** An agent whose stream depends on its key. */
export interface AttendedAgent {
  readonly rackId: RackId;
  /** SHA-256 of the key (SPKI), lower-case hex. */
  readonly keySha256: string;
  /** Called when the key is no longer the rack's. */
  readonly end: (why: RefusedKey<KeyRefusal>) => void;
}

/** Its dependencies. */
export interface RackKeysParts {
  readonly store: StateStore;
  readonly log: Log;
  readonly following: StoreFollower;
}

const racksPrefix = 'racks';

/** The racks' keys and the authorities that their agents trust. */
export class RackKeys {
  readonly #parts: RackKeysParts;
  readonly #followed: FollowedValues;
  readonly #trusts = new Map<RackId, RackTrust & { readonly keySha256: string }>();
  readonly #index = new AgentKeyIndex();
  readonly #attended = new Map<RackId, Set<AttendedAgent>>();
  readonly #observers: (() => void)[] = [];

  constructor(parts: RackKeysParts) {
    this.#parts = parts;
    const note = (key: string, entry: Entry | undefined): void => this.#note(key, entry);
    this.#followed = followValues(parts.following, racksPrefix, note);
  }

  /** Resolves once every rack is known. */
  start(): Promise<void> {
    return this.#followed.start();
  }

  stop(): void {
    this.#followed.stop();
  }

  /** Every rack, as known to this replica. */
  trusts(): RackTrust[] {
    return [...this.#trusts.values()];
  }

  /** The rack with which the key (SHA-256, lower-case hex) is registered, or was. */
  rackOf(keySha256: string): RackId | undefined {
    return this.#index.rackOf(keySha256);
  }

  /** (3) This was just written; the watch reports it later. */
  noteWritten(rackId: RackId, record: wire.RackRecord): void {
    this.#index.note(rackId, record);
  }

  /** Calls `observer` when anything has changed that rotation depends on. */
  onChange(observer: () => void): void {
    this.#observers.push(observer);
  }

  /** Watches an agent's key until the returned function is called (invariants 1, 2). */
  attend(attended: AttendedAgent): () => void {
    const { rackId } = attended;
    const set = this.#attended.get(rackId) ?? new Set();
    set.add(attended);
    this.#attended.set(rackId, set);
    void this.#recheck(attended);
    return () => this.#leave(attended);
  }

  async #recheck(attended: AttendedAgent): Promise<void> {
    const { store, log } = this.#parts;
    const key = storeKey(racksPrefix, attended.rackId);
    try {
      const kept = await readRecord(store, wire.RackRecordSchema, key);
      this.#judge(attended, kept?.record);
    } catch (error) {
      // Without the store the session gets no lease either; the watch reports later changes.
      log.warn({ rack: attended.rackId }, 'an agent’s key could not be checked', error);
    }
  }

  #leave(attended: AttendedAgent): void {
    const set = this.#attended.get(attended.rackId);
    set?.delete(attended);
    if (set?.size === 0) this.#attended.delete(attended.rackId);
  }

  #note(key: string, entry: Entry | undefined): void {
    const rackId = key.slice(racksPrefix.length + 1);
    if (rackId === '' || rackId.includes('.')) return;
    const record = entry && readableRecordOf(this.#parts, wire.RackRecordSchema, entry);
    for (const attended of [...(this.#attended.get(rackId) ?? [])]) this.#judge(attended, record);
    // (4) Otherwise another rack could register them.
    if (entry !== undefined && record === undefined) return;
    this.#index.note(rackId, record);
    const before = this.#trusts.get(rackId);
    if (record === undefined) this.#trusts.delete(rackId);
    else this.#trusts.set(rackId, { ...rackTrust(record), keySha256: keyOf(record) });
    if (JSON.stringify(before) === JSON.stringify(this.#trusts.get(rackId))) return;
    for (const observer of this.#observers) observer();
  }

  #judge(attended: AttendedAgent, record: wire.RackRecord | undefined): void {
    const keySha256 = Buffer.from(attended.keySha256, 'hex');
    const why = whyNotAgent(attended.rackId, record, keySha256);
    if (why === undefined || !this.#attended.get(attended.rackId)?.has(attended)) return;
    this.#leave(attended);
    attended.end(why);
  }
}

function keyOf({ agentPublicKey }: wire.RackRecord): string {
  return sha256Hex(agentPublicKey);
}
