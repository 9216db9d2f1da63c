/**
 * The loop of one target, in a process of its own: mutate, call the parser, judge.
 * The same seed makes the same inputs, as long as the corpus and the code are the same.
 */

import { seededRandom } from '../../packages/sim/src/random.ts';
import { readCorpus } from './corpus.ts';
import { Coverage } from './coverage.ts';
import { GrowthWatch, recentMax } from './growth.ts';
import { type Judge, makeJudge } from './judge.ts';
import { makeMutator } from './mutate.ts';
import { boundsOf, type Failure, type Target } from './target.ts';

/** Inputs between two looks at what was reached. */
const batchInputs = 256;
/** Batches between two looks at the heap. */
const growthBatches = 24;
/** Inputs that join the working set. */
const workingSetMax = 2_000;
/** Different failures after which a target is given up. */
const failuresMax = 5;

export interface FoundFailure {
  readonly failure: Failure;
  readonly input: Uint8Array;
}

export interface CampaignEnd {
  readonly inputs: number;
  readonly blocks: number;
  /** Inputs that reached blocks that nothing before them reached, in order. */
  readonly reached: readonly Uint8Array[];
  readonly failures: readonly FoundFailure[];
}

export interface CampaignOptions {
  readonly seed: number;
  /** Whole batches are run until there are so many. */
  readonly inputs: number;
  /** Asked before each input. */
  readonly hasTime: () => boolean;
}

export async function runCampaign(target: Target, options: CampaignOptions): Promise<CampaignEnd> {
  const campaign = new Campaign(target, options);
  return campaign.run();
}

class Campaign {
  readonly #options: CampaignOptions;
  readonly #judge: Judge;
  readonly #mutate: ReturnType<typeof makeMutator>;
  readonly #random;
  readonly #coverage = new Coverage();
  readonly #growth: GrowthWatch;
  readonly #working: Uint8Array[];
  readonly #reached: Uint8Array[] = [];
  readonly #failures: FoundFailure[] = [];
  readonly #signatures = new Set<string>();
  #inputs = 0;

  constructor(target: Target, options: CampaignOptions) {
    this.#options = options;
    this.#judge = makeJudge(target);
    this.#random = seededRandom(options.seed);
    this.#growth = new GrowthWatch(target);
    this.#working = [...target.seeds, ...readCorpus(target.name)];
    this.#mutate = makeMutator({
      form: target.form,
      tokens: (target.tokens ?? []).map((text) => new TextEncoder().encode(text)),
      inputBytesMax: boundsOf(target).inputBytesMax,
    });
  }

  async run(): Promise<CampaignEnd> {
    await this.#batch(this.#working);
    this.#coverage.takeNew();
    let recent = this.#working.slice(0, recentMax);
    for (let batches = 0; this.#goesOn(); batches += 1) {
      const batch = Array.from({ length: batchInputs }, () => this.#next());
      await this.#batch(batch);
      recent = batch.slice(-recentMax);
      await this.#keepWhatIsNew(batch);
      if (batches % growthBatches === 2) await this.#look(recent);
    }
    await this.#look(recent);
    this.#coverage.close();
    return {
      inputs: this.#inputs,
      blocks: this.#coverage.blocks,
      reached: this.#reached,
      failures: this.#failures,
    };
  }

  #goesOn(): boolean {
    const { inputs, hasTime } = this.#options;
    return this.#failures.length < failuresMax && this.#inputs < inputs && hasTime();
  }

  /** What was found last is mutated as often as all that was there before. */
  #next(): Uint8Array {
    const all = this.#working;
    const from = this.#random.below(3) === 0 ? Math.max(0, all.length - 20) : 0;
    const base = all[from + this.#random.below(all.length - from)] ?? new Uint8Array();
    const other = all[this.#random.below(all.length)] ?? base;
    return this.#mutate(base, this.#random, other);
  }

  async #batch(inputs: readonly Uint8Array[]): Promise<void> {
    for (const input of inputs) {
      if (!this.#options.hasTime()) break;
      this.#inputs += 1;
      const failure = await this.#judge(input);
      if (failure !== undefined) this.#note({ failure, input });
    }
    // So that rejections that nobody waits for are heard.
    await new Promise((resolve) => setImmediate(resolve));
  }

  #note(found: FoundFailure): void {
    const { kind, signature } = found.failure;
    if (this.#signatures.has(`${kind} ${signature}`)) return;
    this.#signatures.add(`${kind} ${signature}`);
    this.#failures.push(found);
  }

  async #look(recent: readonly Uint8Array[]): Promise<void> {
    const found = await this.#growth.look(recent);
    if (found !== undefined) this.#note(found);
  }

  /** Calls the batch again, one by one, to find which of its inputs reached the new blocks. */
  async #keepWhatIsNew(batch: readonly Uint8Array[]): Promise<void> {
    const sought = new Set(this.#coverage.takeNew());
    if (sought.size === 0 || this.#working.length >= workingSetMax) return;
    for (const input of batch) {
      if (!this.#options.hasTime()) return;
      await this.#judge(input);
      const reached = [...this.#coverage.take()].filter((block) => sought.delete(block));
      if (reached.length === 0) continue;
      this.#working.push(input);
      this.#reached.push(input);
      if (sought.size === 0) return;
    }
  }
}
