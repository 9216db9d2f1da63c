/**
 * A defect that is put into production code on purpose: one small replacement in the text of one
 * file, made while the file is loaded. The file itself knows nothing of it.
 *
 * 1. The text to replace stands in its file exactly once; anything else is an error, never a
 *    planted fault that is not there.
 */

/** What must notice the defect. */
export type CaughtBy =
  /** Some seed of the simulation violates a promise. */
  | ({ readonly kind: 'simulation' } & Hunted)
  /** A test of this file fails; `name` picks it. */
  | { readonly kind: 'test'; readonly file: string; readonly name: string };

/** In which worlds it is looked for. */
export interface Hunted {
  /** People run workflows in each of them; unset: in some. */
  readonly workflows?: true;
  /** Also on many hosts at once; unset: nowhere. */
  readonly batches?: true;
  /** Machines netboot that nobody knows; unset: nowhere. */
  readonly discovery?: true;
  /** Pools keep hosts on images; unset: nowhere. */
  readonly pools?: true;
  /** Fleet views are compared with the store; unset: nowhere. */
  readonly views?: true;
  /** A disk loses its wipes with the power in each of them; unset: by weather. */
  readonly forgetfulDisk?: true;
  /** The judge's rule that has to notice; unset: any. */
  readonly rule?: string;
  /** Where it was found last; rarer luck is looked for from this seed on. Unset: from 1. */
  readonly from?: number;
}

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
