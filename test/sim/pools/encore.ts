/**
 * A rollout of hosts that are in service, once nothing goes wrong any more: before that few are for
 * long enough to be taken out. Under a policy that the seed chooses.
 */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type PoolSpecSchema, poolCondition, type store as wire } from '@rackwright/messages';
import type { WorldView } from '../view.ts';
import { gateUrl } from './gate-hook.ts';
import { goodImages, imageReferenceOf } from './registry.ts';
import { windows, wordsOf } from './windows.ts';

/** Open for three minutes of six. */
const shortWindow = wordsOf(windows[0]);
/** Who has no host, or does not come to rest, does without. */
const looksMax = 40;
/** A policy that keeps it from its end for longer is taken back. */
const patienceMs = 15 * 60_000;

export class Encore {
  readonly #view: WorldView;
  #phase: 'before' | 'running' | 'over' = 'before';
  #beganAtMs = 0;
  #looksLeft = looksMax;

  constructor(view: WorldView) {
    this.#view = view;
  }

  get isRunning(): boolean {
    return this.#phase === 'running';
  }

  /** Looks at the pool; what is to be wanted of it now, undefined: nothing. */
  look(record: wire.PoolRecord | undefined): MessageInitShape<typeof PoolSpecSchema> | undefined {
    const { nowMs } = this.#view.heap;
    if (this.#phase === 'over') return undefined;
    this.#looksLeft -= 1;
    if (this.#looksLeft === 0) this.#phase = 'over';
    if (record === undefined) return undefined;
    if (this.#phase === 'running') {
      const isLate = nowMs - this.#beganAtMs > patienceMs;
      const hasMoved = record.pool?.spec?.image === record.pool?.status?.target?.reference;
      if (isLate || (hasMoved && isAtRest(record))) this.#phase = 'over';
      return undefined;
    }
    if (!isAtRest(record)) return undefined;
    this.#phase = 'running';
    this.#beganAtMs = nowMs;
    this.#view.count('encore');
    return this.#wish(record);
  }

  /** Nothing is left to be done. */
  get isOver(): boolean {
    return this.#phase === 'over';
  }

  #wish({ pool, members }: wire.PoolRecord): MessageInitShape<typeof PoolSpecSchema> {
    const { pick } = this.#view.chance;
    const image = imageReferenceOf(pick(goodImages));
    const other = goodImages.map(imageReferenceOf).find((each) => each !== pool?.spec?.image);
    // The very first host goes alone anyway: a wave is one only with a second.
    const names = members.slice(0, 2).map(({ host }) => host);
    const waves = [
      { name: 'first', hosts: { names } },
      { name: 'rest', hosts: { rack: 'racks/r1' } },
    ];
    return {
      image: image === pool?.spec?.image ? (other ?? image) : image,
      rollout: {
        maxUnavailable: { amount: { case: 'count', value: pick([1, 3, 3]) } },
        soak: { seconds: pick([0n, 60n]) },
        waves: pick([[], waves]),
        windows: pick([[], [shortWindow], [shortWindow]]),
        gate: pick([{}, { webhookUrl: gateUrl }]),
        ...(this.#view.random.fraction() < 0.5 ? { maxUnavailablePerRack: 1 } : {}),
      },
    };
  }
}

function isAtRest({ pool, members }: wire.PoolRecord): boolean {
  const { slots = [] } = pool?.status ?? {};
  const isCurrent = poolCondition(pool?.status, 'UpToDate')?.status === true;
  return members.length > 0 && slots.length === 0 && isCurrent;
}
