export { displayOf } from './display.ts';
export { Hosts, type HostsDependencies, type RequestOutcome, rackIdOf } from './reconcile.ts';
export { defaultTiming, type EngineTiming } from './timing.ts';
export type { HostRequest, RequestedStep, Requester } from './types.ts';
