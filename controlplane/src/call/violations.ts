/** Collects everything wrong with a request, so that it is all said at once. */
import { type FieldViolation, invalidArgument } from '@rackwright/messages';

export class Violations {
  readonly #found: FieldViolation[] = [];

  /** `description` says what is wrong and what would be right. */
  add(field: string, description: string): void {
    this.#found.push({ field, description });
  }

  /** Adds when there is a problem. */
  addIf(field: string, problem: string | undefined): void {
    if (problem !== undefined) this.add(field, problem);
  }

  /** Adds everything that another one has found. */
  addAll(other: Violations): void {
    this.#found.push(...other.#found);
  }

  get count(): number {
    return this.#found.length;
  }

  /** Throws `invalidArgument` with everything that was added. */
  throwIfAny(): void {
    if (this.#found.length > 0) throw invalidArgument(this.#found);
  }
}

/** The text as it is shown in a message: quoted and bounded. */
export function quote(text: string): string {
  const shownCharsMax = 80;
  return JSON.stringify(text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text);
}
