/**
 * Notices what stays in memory from call to call: the heap after a collection, over many calls.
 *
 * G1 A heap that has grown is only a suspicion: code that is compiled late grows it as well. The
 *    last inputs, again and again, confirm it, and halving them finds the one.
 * G2 A heap that grows on and on by inputs that are all different fails as well, by the last one.
 */
import type { Failure, Target } from './target.ts';
import { boundsOf } from './target.ts';

/** Inputs that are kept for a confirmation. */
export const recentMax = 32;
const probeCalls = 1_000;
/** A probe may leave so much for each call, by chance. */
const leftBytesPerCall = 64;
/** So often the heap may grow by the bound without a confirmation (G2). */
const unconfirmedMax = 6;

export interface GrowthFound {
  readonly failure: Failure;
  readonly input: Uint8Array;
}

/** Bytes in use after a collection. */
function usedBytes(): number {
  if (globalThis.gc === undefined) throw new Error('growth needs node --expose-gc');
  globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

export class GrowthWatch {
  readonly #target: Target;
  #baseBytes: number | undefined;
  #unconfirmed = 0;

  constructor(target: Target) {
    this.#target = target;
  }

  /** To be asked now and then; the first time is the measure of the others. */
  async look(recent: readonly Uint8Array[]): Promise<GrowthFound | undefined> {
    const used = usedBytes();
    // The least counts: what was needed to start may be given back later.
    this.#baseBytes = Math.min(this.#baseBytes ?? used, used);
    if (used - this.#baseBytes <= boundsOf(this.#target).growthBytesMax) return undefined;
    const input = await growingInput(this.#target, recent);
    if (input !== undefined) return { failure: growth('one input, again and again'), input };
    this.#unconfirmed += 1;
    // The probe has changed the heap.
    this.#baseBytes = usedBytes();
    const last = recent.at(-1);
    if (this.#unconfirmed <= unconfirmedMax || last === undefined) return undefined;
    return { failure: growth('inputs that are all different'), input: last };
  }
}

function growth(by: string): Failure {
  return { kind: 'growth', signature: by, text: `the heap grows by ${by}` };
}

/** Whether calls with these inputs leave something, twice in a row. */
export async function grows(target: Target, inputs: readonly Uint8Array[]): Promise<boolean> {
  if (inputs.length === 0) return false;
  const rounds = Math.ceil(probeCalls / inputs.length);
  await callAll(target, inputs, rounds);
  let before = usedBytes();
  for (let time = 0; time < 2; time += 1) {
    await callAll(target, inputs, rounds);
    const after = usedBytes();
    if (after - before <= leftBytesPerCall * rounds * inputs.length) return false;
    before = after;
  }
  return true;
}

async function callAll(target: Target, inputs: readonly Uint8Array[], rounds: number) {
  for (let round = 0; round < rounds; round += 1) {
    for (const input of inputs) {
      try {
        await target.parse(input);
      } catch {
        // Another check judges errors.
      }
    }
  }
}

async function growingInput(
  target: Target,
  recent: readonly Uint8Array[],
): Promise<Uint8Array | undefined> {
  let suspects = recent;
  if (!(await grows(target, suspects))) return undefined;
  while (suspects.length > 1) {
    const half = suspects.slice(0, Math.ceil(suspects.length / 2));
    suspects = (await grows(target, half)) ? half : suspects.slice(half.length);
  }
  return suspects[0];
}
