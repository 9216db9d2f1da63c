/** Machines that netbooted and are no hosts, and how they become hosts. */

export { Discovery, type DiscoveryDependencies } from './discovery.ts';
