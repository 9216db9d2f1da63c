/** The forms of output. */

/** Values of `-o`, in the order in which help names them. */
export const outputKinds = ['table', 'wide', 'json', 'yaml', 'name'] as const;

/** Value of `-o`. */
export type OutputKind = (typeof outputKinds)[number];
