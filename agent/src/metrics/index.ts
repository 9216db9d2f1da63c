/** What the agent counts. */
export { type BmcMeter, meteredCalls } from './bmc-meter.ts';
export { type AgentFigures, createAgentFigures } from './figures.ts';
export { type ObservedAgent, observeAgent } from './observe.ts';
