/** The rackwright command, for tests and for `main.ts`. */
export { runCli } from './app.ts';
export type { CommandIo, Output } from './command-io.ts';
export { exitCodes } from './failure.ts';
