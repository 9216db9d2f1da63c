/** The boot path of a rack: who may boot the runner, and DHCP, TFTP and HTTP that ask it. */
export {
  type BootConfig,
  type HttpLimits,
  httpLimitsDefault,
  loaderBytesMaxDefault,
  type NamedFile,
  type ProxyDhcpConfig,
  proxyDhcpDefault,
  type RunnerBootConfig,
} from './config.ts';
export { canonicalMac } from './mac.ts';
export type { BootGrant, BootHost, BootMemory } from './memory.ts';
export type { NetbootObservation, NetbootStage } from './observation.ts';
export { type BootDecision, bootDecision } from './permission.ts';
export { type BootDependencies, type BootServices, startBoot } from './start.ts';
