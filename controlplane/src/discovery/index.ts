/** Machines that netbooted and are not hosts, and how they become hosts. */

export { Discovery, type DiscoveryDependencies } from './discovery.ts';
export type { IntakeResult } from './intake.ts';
