/**
 * Keeps the digests behind the images of pools fresh: at once for a name that is new, then from
 * time to time. In memory alone: what it finds is the step's to take in.
 *
 * Invariant: each answer is handed over once, and only while the target is the one under which it
 * was asked: a replica that holds an old one never brings back what another one has replaced since.
 */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { store as wire } from '@rackwright/messages';
import { type Cancel, type Clock, errorText } from '@rackwright/platform';
import type { ResolveAnswer, ResolveImage } from '../../images/index.ts';
import { isOutdated, knownDigest, type Resolved } from '../facts/target.ts';
import { digestOf } from '../policy/image-name.ts';

/** How often a tag is looked at when nothing is said. */
export const pollIntervalDefaultMs = 5 * 60_000;
/** What failed is asked again after this, or when the next look is due. */
const retryDelayMs = 30_000;

interface Lookup {
  readonly reference: string;
  /** The newest answer, until it was handed over. */
  answer: Resolved | undefined;
  timer: Cancel | undefined;
  /** Undefined: it was not answered yet. */
  answered: Answered | undefined;
  /** By which the timer was set. */
  intervalMs: number;
}

interface Answered {
  readonly atMs: number;
  /** Of one that failed: how long the registry wants to be left alone; undefined: it did not. */
  readonly retryAfterMs: number | undefined;
}

export interface LookingUpDependencies {
  readonly clock: Clock;
  readonly resolve: ResolveImage;
}

export class LookingUp {
  readonly #deps: LookingUpDependencies;
  readonly #found: (poolId: string) => void;
  readonly #lookups = new Map<string, Lookup>();
  readonly #stopping = new AbortController();

  /** `found` is called when there is an answer to take. */
  constructor(deps: LookingUpDependencies, found: (poolId: string) => void) {
    this.#deps = deps;
    this.#found = found;
  }

  stop(): void {
    this.#stopping.abort();
    for (const { timer } of this.#lookups.values()) timer?.();
  }

  /** The answer that has come since it was taken last; begins looking when the name is new. */
  take(poolId: string, record: wire.PoolRecord): Resolved | undefined {
    const reference = record.pool?.spec?.image ?? '';
    const lookup = this.#lookups.get(poolId);
    const answer = lookup?.answer;
    const isOld = answer !== undefined && isOutdated(answer, record);
    if (lookup?.reference === reference && !isOld) {
      // A tag that is to be looked at more often is so from now on, not after the long wait.
      if (lookup.intervalMs !== intervalOf(record)) this.#arm(poolId, lookup, record);
      lookup.answer = undefined;
      return answer;
    }
    lookup?.timer?.();
    const begun: Lookup = {
      ...{ reference, answer: undefined, timer: undefined, answered: undefined },
      intervalMs: intervalOf(record),
    };
    this.#lookups.set(poolId, begun);
    void this.#ask(poolId, begun, record);
    return undefined;
  }

  /** It was not written: it is taken once more. */
  putBack(poolId: string, answer: Resolved | undefined): void {
    const lookup = this.#lookups.get(poolId);
    if (answer === undefined || lookup?.reference !== answer.reference) return;
    lookup.answer ??= answer;
  }

  forget(poolId: string): void {
    this.#lookups.get(poolId)?.timer?.();
    this.#lookups.delete(poolId);
  }

  async #ask(poolId: string, lookup: Lookup, record: wire.PoolRecord): Promise<void> {
    const { reference } = lookup;
    const version = record.pool?.status?.target?.version ?? '';
    const known = knownDigest(record, reference);
    const answer = await this.#deps
      .resolve(reference, isLookedInto(record) ? known : '', this.#stopping.signal)
      .catch((error: unknown): ResolveAnswer => {
        return { kind: 'failed', type: 'internal', message: errorText(error) };
      });
    const isOver = this.#stopping.signal.aborted || this.#lookups.get(poolId) !== lookup;
    if (isOver) return;
    const told =
      answer.kind === 'unchanged' ? ({ kind: 'digest', digest: known, version } as const) : answer;
    lookup.answer = told.kind === 'failed' ? { ...told, reference } : { ...told, reference, known };
    lookup.answered = {
      atMs: this.#deps.clock.nowMs(),
      retryAfterMs: answer.kind === 'failed' ? (answer.retryAfterMs ?? 0) : undefined,
    };
    this.#found(poolId);
    this.#arm(poolId, lookup, record);
  }

  /** Asks again when that is due, reckoned from the last answer. */
  #arm(poolId: string, lookup: Lookup, record: wire.PoolRecord): void {
    const { answered, reference } = lookup;
    lookup.intervalMs = intervalOf(record);
    // What a digest names does not change.
    if (answered === undefined || digestOf(reference) !== '') return;
    lookup.timer?.();
    const { intervalMs } = lookup;
    const { atMs, retryAfterMs } = answered;
    const { clock } = this.#deps;
    const delayMs =
      retryAfterMs === undefined
        ? intervalMs
        : Math.max(Math.min(retryDelayMs, intervalMs), retryAfterMs);
    const leftMs = atMs + delayMs - clock.nowMs();
    // A clock that was set back makes no wait longer.
    const waitMs = Math.max(0, Math.min(delayMs, leftMs));
    lookup.timer = clock.after(waitMs, () => this.#again(poolId, lookup));
  }

  /** With the pool as it then is, which whoever is told reads. */
  #again(poolId: string, lookup: Lookup): void {
    if (this.#lookups.get(poolId) !== lookup) return;
    this.#lookups.delete(poolId);
    this.#found(poolId);
  }
}

/** Whether it is known what the target is for each platform: only then is its digest enough. */
function isLookedInto({ pool }: wire.PoolRecord): boolean {
  return Object.keys(pool?.status?.target?.platformDigests ?? {}).length > 0;
}

function intervalOf({ pool }: wire.PoolRecord): number {
  const interval = pool?.spec?.pollInterval;
  return interval === undefined ? pollIntervalDefaultMs : durationMs(interval);
}
