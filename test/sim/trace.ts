/** What happened, in order: hashed whole for comparing runs, the last lines kept for people. */
import { createHash } from 'node:crypto';

export class Trace {
  readonly #hash = createHash('sha256');
  readonly #last: string[] = [];
  readonly #linesMax: number;

  constructor(linesMax: number) {
    this.#linesMax = linesMax;
  }

  line(atMs: number, text: string): void {
    const line = `${(atMs / 1000).toFixed(3).padStart(10)} ${text}`;
    this.#hash.update(`${line}\n`);
    if (this.#linesMax === 0) return;
    this.#last.push(line);
    if (this.#last.length > this.#linesMax) this.#last.shift();
  }

  /** The hash so far; later lines still count. */
  hash(): string {
    return this.#hash.copy().digest('hex').slice(0, 16);
  }

  last(): readonly string[] {
    return this.#last;
  }
}
