/**
 * A named place at which a test may end the process as `kill -9` would (DESIGN §11).
 * Production platforms do nothing unless the program was started with `crashAt` in its
 * configuration; the set of names is held equal to a golden table by a test.
 */
export type CrashPoint = (name: string) => void;
