/** What a person can do, a line each. */

/** One way out: a host that is being removed takes no change, one with a run starts no other. */
export type Line = { readonly kind: 'look' | 'change' | 'start'; readonly text: string };

export const look = (text: string): Line => ({ kind: 'look', text });
export const change = (text: string): Line => ({ kind: 'change', text });
export const start = (text: string): Line => ({ kind: 'start', text });
