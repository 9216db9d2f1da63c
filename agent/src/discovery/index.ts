/** Machines that are no hosts: their boots for an inventory, and the reports about them. */
export {
  AgentDiscovery,
  type DiscoveryLimits,
  type DiscoveryParts,
  defaultDiscoveryLimits,
} from './discovery.ts';
