/**
 * Keeps the digests of pools' images up to date: at once for a new name, then at intervals. Only in
 * memory: the step stores the results.
 *
 * Invariant: each answer is delivered once, and only while the target is the one under which it was
 * requested. So a replica with an old answer never brings back a target that another replica has
 * replaced since.
 */
import { durationMs } from '@bufbuild/protobuf/wkt';
import type { PoolId, store as wire } from '@rackwright/messages';
import { type Cancel, type Clock, errorText } from '@rackwright/platform';
import type { ResolveImage, ResolveResult } from '../../images/index.ts';
import { isOutdated, knownDigest, type ResolvedImage } from '../facts/target.ts';
import { digestInImage } from '../policy/image-name.ts';

/** How often a tag is resolved by default. */
export const pollIntervalDefaultMs = 5 * 60_000;
/** After a failure it is tried again after this, or when the next lookup is due. */
const retryDelayMs = 30_000;

interface Lookup {
  readonly reference: string;
  /** The newest answer, until it was delivered. */
  answer: ResolvedImage | undefined;
  timer: Cancel | undefined;
  /** Undefined: there was no answer yet. */
  answered: LookupResult | undefined;
  /** The interval of the present timer. */
  intervalMs: number;
}

interface LookupResult {
  readonly atMs: number;
  /** After a failure: the pause that the registry requested; undefined: none. */
  readonly retryAfterMs: number | undefined;
}

export interface ImageLookupsDependencies {
  readonly clock: Clock;
  readonly resolve: ResolveImage;
}

export class ImageLookups {
  readonly #deps: ImageLookupsDependencies;
  readonly #found: (poolId: PoolId) => void;
  readonly #lookups = new Map<PoolId, Lookup>();
  readonly #stopping = new AbortController();

  /** `found` is called when there is an answer to take. */
  constructor(deps: ImageLookupsDependencies, found: (poolId: PoolId) => void) {
    this.#deps = deps;
    this.#found = found;
  }

  stop(): void {
    this.#stopping.abort();
    for (const { timer } of this.#lookups.values()) timer?.();
  }

  /** The answer that has come since the last call; starts resolving when the name is new. */
  take(poolId: PoolId, record: wire.PoolRecord): ResolvedImage | undefined {
    const reference = record.pool?.spec?.image ?? '';
    const lookup = this.#lookups.get(poolId);
    const answer = lookup?.answer;
    const isOld = answer !== undefined && isOutdated(answer, record);
    if (lookup?.reference === reference && !isOld) {
      // A shorter interval takes effect at once, not after the present long wait.
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

  /** The answer was not written: it is delivered again. */
  putBack(poolId: PoolId, answer: ResolvedImage | undefined): void {
    const lookup = this.#lookups.get(poolId);
    if (answer === undefined || lookup?.reference !== answer.reference) return;
    lookup.answer ??= answer;
  }

  forget(poolId: PoolId): void {
    this.#lookups.get(poolId)?.timer?.();
    this.#lookups.delete(poolId);
  }

  async #ask(poolId: PoolId, lookup: Lookup, record: wire.PoolRecord): Promise<void> {
    const { reference } = lookup;
    const version = record.pool?.status?.target?.version ?? '';
    const known = knownDigest(record, reference);
    const answer = await this.#deps
      .resolve(reference, hasPlatformDigests(record) ? known : '', this.#stopping.signal)
      .catch((error: unknown): ResolveResult => {
        return { kind: 'failed', type: 'internal', message: errorText(error) };
      });
    const isOver = this.#stopping.signal.aborted || this.#lookups.get(poolId) !== lookup;
    if (isOver) return;
    const text =
      answer.kind === 'unchanged' ? ({ kind: 'digest', digest: known, version } as const) : answer;
    lookup.answer = text.kind === 'failed' ? { ...text, reference } : { ...text, reference, known };
    lookup.answered = {
      atMs: this.#deps.clock.nowMs(),
      retryAfterMs: answer.kind === 'failed' ? (answer.retryAfterMs ?? 0) : undefined,
    };
    this.#found(poolId);
    this.#arm(poolId, lookup, record);
  }

  /** Sets the timer for the next request, counted from the last answer. */
  #arm(poolId: PoolId, lookup: Lookup, record: wire.PoolRecord): void {
    const { answered, reference } = lookup;
    lookup.intervalMs = intervalOf(record);
    // A digest always names the same content.
    if (answered === undefined || digestInImage(reference) !== '') return;
    lookup.timer?.();
    const { intervalMs } = lookup;
    const { atMs, retryAfterMs } = answered;
    const { clock } = this.#deps;
    const delayMs =
      retryAfterMs === undefined
        ? intervalMs
        : Math.max(Math.min(retryDelayMs, intervalMs), retryAfterMs);
    const leftMs = atMs + delayMs - clock.nowMs();
    // After a clock was set back, no wait becomes longer.
    const waitMs = Math.max(0, Math.min(delayMs, leftMs));
    lookup.timer = clock.after(waitMs, () => this.#again(poolId, lookup));
  }

  /** With the present pool, which the callback reads. */
  #again(poolId: PoolId, lookup: Lookup): void {
    if (this.#lookups.get(poolId) !== lookup) return;
    this.#lookups.delete(poolId);
    this.#found(poolId);
  }
}

/** Whether the target's digests for each platform are known: only then is its own digest enough. */
function hasPlatformDigests({ pool }: wire.PoolRecord): boolean {
  return Object.keys(pool?.status?.target?.platformDigests ?? {}).length > 0;
}

function intervalOf({ pool }: wire.PoolRecord): number {
  const interval = pool?.spec?.pollInterval;
  return interval === undefined ? pollIntervalDefaultMs : durationMs(interval);
}
