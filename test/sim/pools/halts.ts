/** The judge's rule P7 about halts, by what pools' records said as they were written. */
import type { RolloutSlot, store } from '@rackwright/messages';

export class HaltRule {
  readonly #found: (rule: string, text: string) => void;
  /** By uid of the pool: what its rollout was stopped for. */
  readonly #halts = new Map<string, string>();

  constructor(found: (rule: string, text: string) => void) {
    this.#found = found;
  }

  /** An older state of the store stands there now. */
  reload(): void {
    this.#halts.clear();
  }

  /** What is forgotten of a host that stays is one that came back: then it is judged anew. */
  written(before: store.PoolRecord | undefined, record: store.PoolRecord, threshold: number): void {
    const uid = record.pool?.uid ?? '';
    const failed = failedOn(record);
    const stay = new Set(record.members.map(({ hostUid }) => hostUid));
    const isBack = failedOn(before).some(({ hostUid }) => {
      return stay.has(hostUid) && !failed.some((each) => each.hostUid === hostUid);
    });
    if (isBack) this.#halts.delete(uid);
    if (failed.length >= threshold) this.#halts.set(uid, haltOf(record));
  }

  /** Nobody is taken for what so many have failed on. */
  judge(record: store.PoolRecord, fresh: readonly RolloutSlot[]): void {
    const target = record.pool?.status?.target;
    if (target === undefined || record.pool?.status?.rolledBackFrom === target.digest) return;
    const pins = record.pool?.spec?.pins ?? {};
    const taken = fresh.find(({ image, host }) => image === target.image && !(host in pins));
    if (taken === undefined || this.#halts.get(record.pool?.uid ?? '') !== haltOf(record)) return;
    this.#found('P7', `${record.pool?.name}: ${taken.host} is taken although so many have failed`);
  }
}

/** Who has failed on the image that the pool is led to. */
function failedOn(record: store.PoolRecord | undefined): readonly store.PoolFailure[] {
  const { spec, status } = record?.pool ?? {};
  return (record?.failures ?? []).filter(({ counted, digest, host }) => {
    return counted && digest === status?.target?.digest && !(host in (spec?.pins ?? {}));
  });
}

/** A halt for something else is another one. */
function haltOf({ pool }: store.PoolRecord): string {
  const { maxUnavailable: max, failureThreshold: threshold } = pool?.spec?.rollout ?? {};
  const amounts = [max, threshold].map((each) => `${each?.amount.case} ${each?.amount.value}`);
  return [pool?.status?.target?.digest, ...amounts].join(', ');
}
