/** The agent's metrics. */
export { type BmcMeter, meteredCalls } from './bmc-meter.ts';
export { type AgentFigures, createAgentFigures } from './figures.ts';
export { type ObservedAgent, observeAgent } from './observe.ts';
