/**
 * For scenarios above this workspace: one agent with its disk on a clock of its own, and the
 * operations on BMCs. Production code imports nothing from here.
 */

export { quietLog } from '@rackwright/platform/testing';
export { createExecutor } from '../operations/executor.ts';
export { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from '../runner-gateway/index.ts';
export { testSigner } from '../runner-gateway/testing.ts';
export { World } from '../session/testing/world.ts';
