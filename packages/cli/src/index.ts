/** The rackwright command, for tests and for `main.ts`. */
export { runCli } from './app.ts';
export { exitCodes } from './failure.ts';
export type { Output, World } from './world.ts';
