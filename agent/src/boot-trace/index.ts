/** Boots into the runner, step by step, for people. */
export {
  BootTracer,
  type BootTracerLimits,
  defaultBootTracerLimits,
  type TracedGrant,
} from './tracer.ts';
