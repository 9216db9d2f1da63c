/**
 * Which places of our code a batch of inputs reaches (V8's precise coverage), so that inputs that
 * reach new ones join the working set. A place is a character of a source: the blocks that V8 tells
 * depend on how often each was run.
 */
import { type Profiler, Session } from 'node:inspector';

/** Code that is judged: not that of libraries, nor the fuzzer itself. */
const ownCode = /\/(?:packages|agent|controlplane)\/[^?]*\.ts$/;

/** One byte for each character of a script: 1 where it was run. */
type Places = Map<string, Uint8Array>;

export class Coverage {
  readonly #session = new Session();
  readonly #known: Places = new Map();
  #knownPlaces = 0;

  constructor() {
    this.#session.connect();
    this.#session.post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Places known so far. */
  get places(): number {
    return this.#knownPlaces;
  }

  /** Whether a place was reached since the last look that is not known. */
  hasNew(): boolean {
    return newIn(this.#take(), this.#known) > 0;
  }

  /** Takes what was reached since the last look as known; gives whether some of it was new. */
  learn(): boolean {
    const taken = this.#take();
    const found = newIn(taken, this.#known);
    for (const [script, places] of taken) {
      const known = this.#known.get(script) ?? new Uint8Array(places.length);
      this.#known.set(script, joined(known, places));
    }
    this.#knownPlaces += found;
    return found > 0;
  }

  close(): void {
    this.#session.disconnect();
  }

  /** The calls of a session of one's own process answer at once. */
  #take(): Places {
    let result: Profiler.TakePreciseCoverageReturnType | undefined;
    this.#session.post('Profiler.takePreciseCoverage', (_error, given) => {
      result = given;
    });
    const scripts = (result?.result ?? []).filter(({ url }) => ownCode.test(url));
    return new Map(
      scripts
        .filter(({ functions }) => functions.some(({ ranges }) => (ranges[0]?.count ?? 0) > 0))
        .map(({ scriptId, functions }) => [scriptId, placesOf(functions)]),
    );
  }
}

/** What is inside decides: a block in a function, and a function in another one. */
function placesOf(functions: readonly Profiler.FunctionCoverage[]): Uint8Array {
  const ranges = functions
    .flatMap((each) => each.ranges)
    .toSorted((a, b) => a.startOffset - b.startOffset || b.endOffset - a.endOffset);
  const end = ranges.reduce((most, { endOffset }) => Math.max(most, endOffset), 0);
  const places = new Uint8Array(4 * Math.ceil(end / 4));
  for (const { startOffset, endOffset, count } of ranges) {
    places.fill(count > 0 ? 1 : 0, startOffset, endOffset);
  }
  return places;
}

function newIn(taken: Places, known: Places): number {
  let found = 0;
  for (const [script, places] of taken) {
    const before = known.get(script);
    const [now, then] = [wordsOf(places), before === undefined ? undefined : wordsOf(before)];
    for (let at = 0; at < now.length; at += 1) {
      const added = (now[at] as number) & ~(then?.[at] ?? 0);
      // One bit for each place.
      if (added !== 0) found += (Math.imul(added, 0x0101_0101) >>> 24) & 0xff;
    }
  }
  return found;
}

/** Four places at once. */
function wordsOf(places: Uint8Array): Uint32Array {
  return new Uint32Array(places.buffer, 0, places.length / 4);
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array {
  const all = new Uint8Array(Math.max(one.length, other.length));
  all.set(one);
  for (let at = 0; at < other.length; at += 1) if (other[at] === 1) all[at] = 1;
  return all;
}
