/**
 * For scenarios above this workspace: one agent with its disk on a clock of its own, and the
 * operations on BMCs. Production code imports nothing from here.
 */
export { type BmcDrivers, type BmcEndpoint, createExecutor } from '../operations/index.ts';
export { defaultDeskLimits, RunnerDesk } from '../runner-gateway/index.ts';
export { quietLog, testSigner } from '../runner-gateway/testing.ts';
export type { OperationContext } from '../session/index.ts';
export { type Work, World } from '../session/testing/world.ts';
