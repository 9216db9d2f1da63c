/** Machines that netbooted and are no hosts, and how they become hosts. */
export {
  type AcceptedFrom,
  Discovery,
  type DiscoveryDependencies,
} from './discovery.ts';
export type { Acceptance } from './judge.ts';
export { unicastMac } from './traits.ts';
