/** The machine room of the demo, for tests that want a control plane with racks of software. */
export { planFleet } from '../fleet.ts';
export { parseOptions } from '../options.ts';
export { makeFolder } from './folder.ts';
export { Site } from './site.ts';
