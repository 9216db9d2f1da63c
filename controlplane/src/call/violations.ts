/** Collects every violation of a request, so that one response names all of them. */
import { type FieldViolation, invalidArgument } from '@rackwright/messages';

export class Violations {
  readonly #found: FieldViolation[] = [];

  /** `description` says what is wrong and what would be right. */
  add(field: string, description: string): void {
    this.#found.push({ field, description });
  }

  /** Adds the problem, if there is one. */
  addIf(field: string, problem: string | undefined): void {
    if (problem !== undefined) this.add(field, problem);
  }

  /** Adds all violations of another collection. */
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

/** The text in the form for messages: quoted and bounded. */
export function quote(text: string): string {
  const shownCharsMax = 80;
  return JSON.stringify(text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}…` : text);
}
