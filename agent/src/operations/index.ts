/**
 * What the agent needs of BMCs before any operation: their addresses, and how they are identified.
 * The operations themselves are in `executor.ts`, which `work.ts` loads.
 */
export {
  type BmcDrivers,
  type BmcEndpoint,
  bmcEndpoint,
  failure,
  identityToWire,
  resolveBmc,
  resultOfBmc,
} from './bmc-access.ts';
export { bmcIdentityDifference } from './bmc-identity.ts';
export type { ExecutorParts } from './executor.ts';
export { expectBmc } from './expected-bmc.ts';
export type { BootFirmware, BootMediumUrl } from './set-power.ts';
