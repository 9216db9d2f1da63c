/**
 * The kept operations, with indexes for each look-up: the look-ups when an operation comes, ends or
 * is answered cost the same for any number of operations.
 */
import type { HostUid, OperationId } from '@rackwright/messages';
import type { Attempt } from './attempt.ts';

const none: ReadonlySet<Attempt> = new Set();

export class AttemptBook {
  readonly #byId = new Map<OperationId, Attempt>();
  readonly #byHost = new Map<HostUid, Set<Attempt>>();
  /** Cancels, by the id that they name. */
  readonly #cancels = new Map<OperationId, Set<Attempt>>();
  readonly #ended = new Set<Attempt>();
  readonly #answered = new Set<Attempt>();

  get size(): number {
    return this.#byId.size;
  }

  get(id: OperationId): Attempt | undefined {
    return this.#byId.get(id);
  }

  values(): readonly Attempt[] {
    return [...this.#byId.values()];
  }

  ofHost(hostUid: HostUid): ReadonlySet<Attempt> {
    return this.#byHost.get(hostUid) ?? none;
  }

  /** Whether a cancel that is kept names this id. */
  isCancelled(id: OperationId): boolean {
    return this.#cancels.has(id);
  }

  /** Those in the phase `ended`. */
  get ended(): ReadonlySet<Attempt> {
    return this.#ended;
  }

  /** Those whose report has got a verdict; a report that is asked for again is not left out. */
  get answered(): ReadonlySet<Attempt> {
    return this.#answered;
  }

  add(attempt: Attempt): void {
    this.#byId.set(attempt.id, attempt);
    addTo(this.#byHost, attempt.hostUid, attempt);
    if (attempt.check.kind === 'cancel') addTo(this.#cancels, attempt.check.targetId, attempt);
    if (attempt.phase === 'ended') this.#ended.add(attempt);
    if (attempt.answered) this.#answered.add(attempt);
  }

  end(attempt: Attempt): void {
    attempt.phase = 'ended';
    if (this.#byId.get(attempt.id) === attempt) this.#ended.add(attempt);
  }

  /** Its report has a verdict. */
  answer(attempt: Attempt): void {
    attempt.answered = true;
    if (this.#byId.get(attempt.id) === attempt) this.#answered.add(attempt);
  }

  /** It is kept no longer. */
  remove(attempt: Attempt): void {
    attempt.phase = 'gone';
    this.#byId.delete(attempt.id);
    takeFrom(this.#byHost, attempt.hostUid, attempt);
    if (attempt.check.kind === 'cancel') takeFrom(this.#cancels, attempt.check.targetId, attempt);
    this.#ended.delete(attempt);
    this.#answered.delete(attempt);
  }
}

function addTo(sets: Map<string, Set<Attempt>>, key: string, attempt: Attempt): void {
  const set = sets.get(key);
  if (set === undefined) sets.set(key, new Set([attempt]));
  else set.add(attempt);
}

function takeFrom(sets: Map<string, Set<Attempt>>, key: string, attempt: Attempt): void {
  const set = sets.get(key);
  set?.delete(attempt);
  if (set?.size === 0) sets.delete(key);
}
