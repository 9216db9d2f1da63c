/**
 * A defect that is put into production code on purpose: one small replacement in the text of one
 * file, made while the file is loaded. The file itself knows nothing of it.
 *
 * 1. The text to replace stands in its file exactly once; anything else is an error, never a
 *    planted fault that is not there.
 */

/** What must notice the defect. */
export type CaughtBy =
  /** Some seed of the simulation violates a promise; `workflows`: people run some in each seed. */
  | { readonly kind: 'simulation'; readonly workflows?: true }
  /** A test of this file fails; `name` picks it. */
  | { readonly kind: 'test'; readonly file: string; readonly name: string };

export interface Plant {
  readonly name: string;
  /** The promise that it breaks. */
  readonly breaks: string;
  /** From the repository's root. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  readonly caughtBy: CaughtBy;
}

/** The file's text with the defect in it. Throws when it cannot be put there (invariant 1). */
export function withDefect(text: string, { name, file, find, replace }: Plant): string {
  const parts = text.split(find);
  if (parts.length === 2) return parts.join(replace);
  const times = parts.length - 1;
  throw new Error(`${name}: ${file} has the text to replace ${times} times, not once:\n${find}`);
}
