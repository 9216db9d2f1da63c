/** Machines that are no hosts: their boots for an inventory, and what is told of them. */
export {
  Discovery,
  type DiscoveryLimits,
  type DiscoveryParts,
  defaultDiscoveryLimits,
} from './discovery.ts';
