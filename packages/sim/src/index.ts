/** The simulated platform: one event heap, and on it clocks, chance, processes, disks and links. */
export { type DiskFaults, SimPlatters, simDisk } from './disk.ts';
export { EventHeap } from './heap.ts';
export { type Direction, type Link, type LinkEnd, type LinkHandlers, openLink } from './link.ts';
export { SimProcess } from './process.ts';
export { seededRandom } from './random.ts';
