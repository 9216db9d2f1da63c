/**
 * The secrets key that seals, and its rotation on all replicas without downtime.
 *
 * The store says which key seals. A person puts a new key before it, in the configured source, and
 * requests the rotation. Then any replica carries out each step automatically:
 *
 *     asked     every replica reads its keys again, and writes into the store which ones it has
 *     changed   once all have the new key, it is the one that seals
 *     moved     every record is sealed again, one by one
 *
 * Invariants:
 * 1. Every running replica can open what the present key seals. A replica does not start without
 *    that key; one that loses it seals nothing and reports itself as unfit.
 * 2. No key is given up that a record still needs: a new set of keys must contain it.
 * 3. Every step may be interrupted, raced and repeated: the remaining work follows from the store.
 */
import { create, fromBinary } from '@bufbuild/protobuf';
import { timestampFromMs, timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type Actor,
  failedPrecondition,
  type ReplicaId,
  type RequestId,
  type SecretsKey,
  SecretsKeySchema,
  store as wire,
} from '@rackwright/messages';
import {
  type Cancel,
  type Clock,
  errorText,
  type Log,
  type Random,
  whenSettled,
} from '@rackwright/platform';
import { type StateStore, storeKey } from '@rackwright/store';
import { type FollowedValues, followValues, type StoreFollower } from '../following/index.ts';
import {
  changeRecord,
  deleteRecord,
  hasApplied,
  type KeptRecord,
  orUnavailable,
  readRecord,
  untilWritten,
  withApplied,
  writeRecord,
} from '../records/index.ts';
import { countByKey, resealAll } from './census.ts';
import type { KeySource } from './key-source.ts';
import { describeKey, type Reader, waitingFor } from './rotation-status.ts';
import { SecretError, type Secrets, secretsKeyId } from './secrets.ts';

export interface KeeperParts {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly secrets: Secrets;
  readonly source: KeySource;
  readonly following: StoreFollower;
  readonly replicaId: ReplicaId;
  /** Whether other replicas may use the store, which need a key before it seals. */
  readonly isShared: boolean;
  /** How often the store is read, in case a change was missed. */
  readonly resyncIntervalMs: number;
}

const recordKey = storeKey('secrets', 'key');
/** Its name in errors. */
const keyText = 'the secrets key';
const readersPrefix = storeKey('secrets', 'readers');
/** How often a replica confirms that it runs, milliseconds. */
const readerRenewMs = 60_000;
/** A replica without a confirmation for this long has stopped, and is not waited for. */
const readerGoneMs = 200_000;
/** Pause before another check during the wait for replicas. */
const waitMs = 2_000;
/** Pauses before keys are read again while the requested one is missing. */
const readAgainMsMin = 2_000;
const readAgainMsMax = 60_000;

export class SecretsKeeper {
  readonly #parts: KeeperParts;
  #rounds: Promise<void> = Promise.resolve();
  #cancelTimer: Cancel = () => undefined;
  #followed: FollowedValues | undefined;
  #isStopped = false;
  #problem = '';
  /** `asked_time` of the request for which the keys were read last. */
  #readForMs = 0;
  #readAgainAtMs = 0;
  #readAgainPauseMs = readAgainMsMin;
  #lastFitness = true;
  #onFitness: (isFit: boolean) => void = () => undefined;

  constructor(parts: KeeperParts) {
    this.#parts = parts;
  }

  /** Rejects with `SecretError` when the sealing key is not among ours (invariant 1). */
  async start(): Promise<void> {
    const { secrets, source } = this.#parts;
    const { keyId } = (await this.#record()).record;
    if (!secrets.keyIds.includes(keyId)) {
      throw new SecretError(
        `the store’s secrets are sealed with secrets key ${keyId}, but ${source.described} ` +
          `holds ${secrets.keyIds.join(', ')}. Add that key, as a line of its own.`,
      );
    }
    secrets.sealWith(keyId);
    await this.#publishKeys();
    await this.#round();
    this.#arm(this.#parts.resyncIntervalMs);
    await this.#follow();
  }

  /** Whether this replica has the sealing key (invariant 1). */
  get isFit(): boolean {
    return this.#parts.secrets.canSeal;
  }

  /** Calls `observer` whenever `isFit` changes. */
  onFitness(observer: (isFit: boolean) => void): void {
    this.#onFitness = observer;
  }

  stop(): void {
    this.#isStopped = true;
    this.#followed?.stop();
    this.#cancelTimer();
  }

  /** After `stop`, while the store is open: others need not wait for this replica. */
  async leave(): Promise<void> {
    await this.#rounds;
    if (!this.#parts.isShared) return;
    const { store, replicaId, log } = this.#parts;
    const key = storeKey('secrets', 'readers', replicaId);
    try {
      const kept = await readRecord(store, wire.SecretsReaderRecordSchema, key);
      if (kept !== undefined) await deleteRecord(this.#parts, key, kept.revision);
    } catch (error) {
      // The others wait as for a replica that stopped without notice.
      log.warn({}, 'the record of the keys of this replica could not be removed', error);
    }
  }

  /** The present status. */
  async status(): Promise<SecretsKey> {
    const { store, secrets, source } = this.#parts;
    const { record } = await this.#record();
    const readers = await this.#readers();
    const uses = await countByKey(store);
    const shown = describeKey(record, uses, readers, secrets.keyIds);
    const waitsFor = waitingFor(record, uses, readers);
    return create(SecretsKeySchema, { ...shown, source: source.described, waitsFor });
  }

  /** Reads the keys again and requests the first of them; continues an interrupted request. */
  async rotate(actor: Actor, requestId: RequestId): Promise<SecretsKey> {
    const { record } = await this.#record();
    if (!hasApplied(record, requestId)) await this.#ask(actor, requestId);
    await this.#round();
    return this.status();
  }

  async #ask(actor: Actor, requestId: RequestId): Promise<void> {
    const { secrets, source, log } = this.#parts;
    const keys = await source.read().catch((error: unknown) => {
      if (!(error instanceof SecretError)) throw error;
      throw failedPrecondition('SECRETS_KEY_UNREADABLE', error.message);
    });
    await this.#mayUse(keys);
    const [first] = keys;
    const target = first === undefined ? '' : secretsKeyId(first);
    secrets.useKeys(keys);
    await this.#change((next) => {
      next.askedTime = timestampFromMs(this.#parts.clock.nowMs());
      next.askedBy = actor;
      next.nextKeyId = target === next.keyId ? '' : target;
      next.requestIds = withApplied(next.requestIds, requestId);
    });
    log.info({ secretsKey: target, source: source.described, actor }, 'secrets key asked for');
    this.#readForMs = timestampMs((await this.#record()).record.askedTime ?? timestampFromMs(0));
    await this.#publishKeys();
  }

  /** Invariant 2. */
  async #mayUse(keys: readonly Uint8Array[]): Promise<void> {
    const { store, source } = this.#parts;
    const offered = new Set(keys.map(secretsKeyId));
    const { record } = await this.#record();
    const uses = await countByKey(store);
    for (const id of [record.keyId, ...uses.keys()]) {
      // A key that no replica has any more must not block the rotation.
      if (offered.has(id) || !this.#parts.secrets.keyIds.includes(id)) continue;
      const { records = 0, names = [] } = uses.get(id) ?? {};
      if (records === 0 && id !== record.keyId) continue;
      const some = names.length === 0 ? '' : `(${names.join(', ')}) `;
      throw failedPrecondition(
        'SECRETS_KEY_NEEDED',
        `${source.described} no longer holds secrets key ${id}, under which ${records} ` +
          `records ${some}are. ` +
          'Write the new key first and that one behind it, as lines of their own.',
      );
    }
  }

  /** One after another: two rounds at once would only compete with each other. */
  #round(): Promise<void> {
    const round = this.#rounds.then(() => this.#step());
    this.#rounds = whenSettled(round);
    return round;
  }

  async #step(): Promise<void> {
    const { secrets, log } = this.#parts;
    const { record } = await this.#record();
    await this.#readAgain(record);
    if (record.keyId !== secrets.keyId) {
      secrets.sealWith(record.keyId);
      log.info({ secretsKey: record.keyId }, 'another secrets key seals');
    }
    if (record.nextKeyId !== '') await this.#changeOver(record.nextKeyId);
    this.#publishFitness();
    if (!secrets.canSeal) {
      this.#arm(waitMs);
      return;
    }
    const { changed, left, problems } = await resealAll(this.#parts, secrets);
    if (changed > 0) log.info({ secretsKey: secrets.keyId, changed }, 'secrets sealed anew');
    for (const problem of problems) log.warn({ problem }, 'a secret keeps its old key');
    if (left > 0 || record.nextKeyId !== '') this.#arm(waitMs);
  }

  /**
   * Another replica requested a key: our source may have it already, or later. Reads it at once for
   * each request, and then repeatedly, because keys reach machines one by one and programs fail.
   */
  async #readAgain(record: wire.SecretsKeyRecord): Promise<void> {
    const { secrets, source, log, clock } = this.#parts;
    const askedMs = record.askedTime === undefined ? 0 : timestampMs(record.askedTime);
    const wanted = [record.keyId, record.nextKeyId].filter((id) => id !== '');
    if (wanted.every((id) => secrets.keyIds.includes(id))) return;
    const nowMs = clock.suspendAwareMs();
    if (this.#readForMs !== askedMs) this.#readAgainPauseMs = readAgainMsMin;
    else if (nowMs < this.#readAgainAtMs) return;
    this.#readForMs = askedMs;
    this.#readAgainAtMs = nowMs + this.#readAgainPauseMs;
    this.#readAgainPauseMs = Math.min(this.#readAgainPauseMs * 2, readAgainMsMax);
    const before = [...secrets.keyIds, this.#problem].join();
    try {
      const keys = await source.read();
      await this.#mayUse(keys);
      secrets.useKeys(keys);
      this.#problem = '';
    } catch (error) {
      this.#problem = errorText(error);
      log.error({}, 'the secrets keys could not be read again', error);
    }
    if (before !== [...secrets.keyIds, this.#problem].join()) await this.#publishKeys();
  }

  #publishFitness(): void {
    const { secrets, source, log } = this.#parts;
    if (this.isFit === this.#lastFitness) return;
    this.#lastFitness = this.isFit;
    if (!this.isFit) {
      const text = 'the key that seals secrets is not here: nothing is sealed until it is';
      log.error({ secretsKey: secrets.keyId, source: source.described }, text);
    }
    this.#onFitness(this.isFit);
  }

  /** Changes to the key once every replica has it. */
  async #changeOver(target: string): Promise<void> {
    const { secrets, clock, log } = this.#parts;
    if (!secrets.keyIds.includes(target)) return;
    const readers = await this.#readers();
    if (readers.some(({ record }) => !record.keyIds.includes(target))) return;
    const done = await this.#change((next) => {
      if (next.nextKeyId !== target) return;
      next.keyId = target;
      next.nextKeyId = '';
      next.activeTime = timestampFromMs(clock.nowMs());
    });
    if (done.keyId !== target) return;
    secrets.sealWith(target);
    log.info({ secretsKey: target }, 'another secrets key seals');
  }

  /** This replica, and those that have confirmed recently that they run. */
  async #readers(): Promise<readonly Reader[]> {
    const { store, clock, replicaId, secrets } = this.#parts;
    const own = create(wire.SecretsReaderRecordSchema, {
      keyIds: [...secrets.keyIds],
      problem: this.#problem,
      time: timestampFromMs(clock.nowMs()),
    });
    if (!this.#parts.isShared) return [{ replica: replicaId, record: own }];
    const { entries } = await orUnavailable(store.list(readersPrefix));
    const others = entries.flatMap(({ key, value }): Reader[] => {
      const replica = key.slice(readersPrefix.length + 1);
      const record = fromBinary(wire.SecretsReaderRecordSchema, value);
      const seenMs = record.time === undefined ? 0 : timestampMs(record.time);
      if (replica === replicaId || seenMs + readerGoneMs < clock.nowMs()) return [];
      return [{ replica, record }];
    });
    return [{ replica: replicaId, record: own }, ...others];
  }

  /** Writes which keys this replica has; removes the records of replicas that stopped long ago. */
  async #publishKeys(): Promise<void> {
    if (!this.#parts.isShared) return;
    const { store, clock, secrets, replicaId } = this.#parts;
    const key = storeKey('secrets', 'readers', replicaId);
    const schema = wire.SecretsReaderRecordSchema;
    const keyIds = [...secrets.keyIds];
    const time = timestampFromMs(clock.nowMs());
    const record = create(schema, { keyIds, time, problem: this.#problem });
    const kept = await readRecord(store, schema, key);
    await writeRecord(this.#parts, schema, key, record, kept?.revision ?? 'absent');
    const { entries } = await orUnavailable(store.list(readersPrefix));
    for (const entry of entries) {
      const seen = fromBinary(schema, entry.value).time;
      if (seen !== undefined && timestampMs(seen) + readerGoneMs >= clock.nowMs()) continue;
      await deleteRecord(this.#parts, entry.key, entry.revision);
    }
  }

  #record(): Promise<KeptRecord<wire.SecretsKeyRecord>> {
    const { store, clock, secrets } = this.#parts;
    const schema = wire.SecretsKeyRecordSchema;
    return untilWritten(keyText, async () => {
      const kept = await readRecord(store, schema, recordKey);
      if (kept !== undefined) return kept;
      const activeTime = timestampFromMs(clock.nowMs());
      const record = create(schema, { keyId: secrets.keyId, activeTime });
      const written = await writeRecord(this.#parts, schema, recordKey, record, 'absent');
      return written.kind === 'ok' ? { record, revision: written.revision } : undefined;
    });
  }

  async #change(edit: (next: wire.SecretsKeyRecord) => void): Promise<wire.SecretsKeyRecord> {
    const { record } = await this.#record();
    const edited = (next: wire.SecretsKeyRecord) => {
      edit(next);
      return next;
    };
    const schema = wire.SecretsKeyRecordSchema;
    const texts = { name: keyText };
    const changed = await changeRecord(this.#parts, schema, recordKey, edited, texts);
    return changed?.record ?? record;
  }

  #arm(delayMs: number): void {
    const { clock, log, resyncIntervalMs } = this.#parts;
    if (this.#isStopped) return;
    this.#cancelTimer();
    this.#cancelTimer = clock.after(delayMs, () => {
      this.#arm(
        this.#parts.isShared ? Math.min(readerRenewMs, resyncIntervalMs) : resyncIntervalMs,
      );
      this.#renew()
        .then(() => this.#round())
        .catch((error: unknown) => log.warn({}, 'secrets not looked at', error));
    });
  }

  #renewedMs = 0;

  async #renew(): Promise<void> {
    const nowMs = this.#parts.clock.nowMs();
    if (Math.abs(nowMs - this.#renewedMs) < readerRenewMs / 2) return;
    this.#renewedMs = nowMs;
    await this.#publishKeys();
  }

  /** Changes by other replicas are followed at once; the timer finds missed ones. */
  async #follow(): Promise<void> {
    if (!this.#parts.isShared) return;
    const { following, log } = this.#parts;
    const check = (key: string): void => {
      if (key !== recordKey) return;
      this.#round().catch((error: unknown) => {
        log.warn({}, 'secrets not looked at', error);
      });
    };
    this.#followed = followValues(following, recordKey, check);
    await this.#followed.start();
  }
}
