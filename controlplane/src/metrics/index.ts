/** The metrics of the control plane, and the page from which they are scraped. */
export { type CallMeter, countCalls } from './counted-calls.ts';
export { createFigures, type Figures } from './figures.ts';
export { measuredStore, type StoreMeter } from './measured-store.ts';
export { CountedRacks } from './racks.ts';
export { openTraces, serveFigures } from './serve.ts';
