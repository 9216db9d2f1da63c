/** Values that a script has recorded, for use in its later commands. */
import { StoryFailure } from './stage.ts';

/** The line of a plan that starts it. */
const startLine = /^\s*rackwright host start (\S+) ([0-9a-f]+)\s*$/gm;

export class Notes {
  readonly #times = new Map<string, string>();
  readonly #plans = new Map<string, string>();

  /** Remembers the time under a name. */
  mark(name: string): void {
    this.#times.set(name, new Date().toISOString());
  }

  /** Takes the hashes of plans from what a command printed. */
  noteOutput(output: string): void {
    for (const [, host = '', hash = ''] of output.matchAll(startLine)) this.#plans.set(host, hash);
  }

  timeOf(name: string): string {
    return noted(this.#times, name, `no time was marked as ${name}`);
  }

  planOf(host: string): string {
    return noted(this.#plans, host, `no plan for ${host} was printed`);
  }
}

function noted(notes: ReadonlyMap<string, string>, name: string, otherwise: string): string {
  const value = notes.get(name);
  if (value === undefined) throw new StoryFailure(otherwise);
  return value;
}
