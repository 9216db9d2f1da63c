/**
 * For scenarios in other workspaces: the pure state machine on its bench, functions computed with
 * it, and a whole control plane on loopback. Production code imports nothing from here.
 */
export { adviceFor } from '../host/explain/advice.ts';
export { explainHost } from '../host/explain/explain.ts';
export { explainRack } from '../host/explain/rack.ts';
export { nextWakeMs } from '../host/shell/wake.ts';
export {
  type Bench,
  bench,
  done,
  driveToErase,
  driveToInspect,
  erased,
  failed,
  inspected,
  startMs,
  verified,
  virtioDisk,
} from '../host/testing/bench.ts';
export { manageableHost, putHost } from '../services/prepared.fixture.ts';
export { addSurroundings, type Fixture, specOf, startFixture } from '../services/rpc.fixture.ts';
export { builtInSteps, cleanPlan } from '../steps/index.ts';
