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

export interface FoundFailure {
  readonly failure: Failure;
  readonly input: Uint8Array;
}

export interface CampaignEnd {
  readonly inputs: number;
  /** Characters of our sources that were run. */
  readonly places: number;
  /** Inputs that reached places that nothing before them reached, in order. */
  readonly reached: readonly Uint8Array[];
  readonly failures: readonly FoundFailure[];
}

export interface CampaignOptions {
  readonly seed: number;
  /** Whole batches are run until there are so many. */
  readonly inputs: number;
  /** Different failures after which the target is given up. */
  readonly failuresMax: number;
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
    this.#coverage.learn();
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
      places: this.#coverage.places,
      reached: this.#reached,
      failures: this.#failures,
    };
  }

  #goesOn(): boolean {
    return this.#inputs < this.#options.inputs && this.#mayCall();
  }

  #mayCall(): boolean {
    return this.#failures.length < this.#options.failuresMax && this.#options.hasTime();
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
      if (!this.#mayCall()) break;
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

  /** Calls the batch again, by halves, to find which of its inputs reached what is new. */
  async #keepWhatIsNew(batch: readonly Uint8Array[]): Promise<void> {
    if (!this.#coverage.hasNew()) return;
    for (let rest = batch; rest.length > 0; ) {
      const at = await this.#firstWithNew(rest);
      const input = at === undefined ? undefined : rest[at];
      if (at === undefined || input === undefined) return;
      await this.#call([input]);
      this.#coverage.learn();
      this.#reached.push(input);
      if (this.#working.length < workingSetMax) this.#working.push(input);
      rest = rest.slice(at + 1);
    }
  }

  /** Undefined: none of them does, or the time is over. */
  async #firstWithNew(inputs: readonly Uint8Array[]): Promise<number | undefined> {
    await this.#call(inputs);
    if (!this.#coverage.hasNew()) return undefined;
    let [from, to] = [0, inputs.length];
    while (to - from > 1) {
      const middle = Math.ceil((from + to) / 2);
      await this.#call(inputs.slice(from, middle));
      if (!this.#mayCall()) return undefined;
      if (this.#coverage.hasNew()) to = middle;
      else from = middle;
    }
    return from;
  }

  async #call(inputs: readonly Uint8Array[]): Promise<void> {
    for (const input of inputs) if (this.#mayCall()) await this.#judge(input);
  }
}
