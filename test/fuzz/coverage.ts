/**
 * Which blocks of our code a batch of inputs reaches (V8's precise coverage), so that inputs that
 * reach new ones join the working set.
 */
import { type Profiler, Session } from 'node:inspector';

/** Code that is judged: not that of libraries, nor the fuzzer itself. */
const ownCode = /\/(?:packages|agent|controlplane)\/[^?]*\.ts$/;

export class Coverage {
  readonly #session = new Session();
  readonly #reached = new Set<string>();

  constructor() {
    this.#session.connect();
    this.#post('Profiler.enable');
    this.#session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: true });
  }

  /** Blocks known so far. */
  get blocks(): number {
    return this.#reached.size;
  }

  /** The blocks reached since the last call that nothing reached before, which are known now. */
  takeNew(): string[] {
    const found = this.#take().filter((block) => !this.#reached.has(block));
    for (const block of found) this.#reached.add(block);
    return found;
  }

  /** The blocks reached since the last call. */
  take(): ReadonlySet<string> {
    return new Set(this.#take());
  }

  close(): void {
    this.#session.disconnect();
  }

  #post(method: 'Profiler.enable'): void {
    this.#session.post(method);
  }

  /** The calls of a session of one's own process answer at once. */
  #take(): string[] {
    let result: Profiler.TakePreciseCoverageReturnType | undefined;
    this.#session.post('Profiler.takePreciseCoverage', (_error, given) => {
      result = given;
    });
    const scripts = (result?.result ?? []).filter(({ url }) => ownCode.test(url));
    return scripts.flatMap(({ scriptId, functions }) =>
      functions.flatMap(({ ranges }) =>
        ranges
          .filter(({ count }) => count > 0)
          .map(({ startOffset, endOffset }) => `${scriptId}:${startOffset}-${endOffset}`),
      ),
    );
  }
}
