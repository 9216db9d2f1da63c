/** Lines that say what a person can do. */

/**
 * One action. A host that is being removed accepts no change, and one with a run starts no other
 * run.
 */
export type Line = { readonly kind: 'inspect' | 'change' | 'start'; readonly text: string };

export const inspectLine = (text: string): Line => ({ kind: 'inspect', text });
export const changeLine = (text: string): Line => ({ kind: 'change', text });
export const startLine = (text: string): Line => ({ kind: 'start', text });
