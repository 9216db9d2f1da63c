/**
 * The boot path of a rack: the decision who may boot the runner, and the DHCP, TFTP and HTTP
 * servers that ask for it.
 */

export type { BootEvent, BootProgram, BootStage } from './boot-events.ts';
export {
  addressAsked,
  anyAddress,
  type BootConfig,
  type BootHttpLimits,
  type BootInterface,
  bootProblems,
  httpLimitsDefault,
  keptFileBytesMaxDefault,
  loaderBytesMaxDefault,
  type NamedFile,
  portsClash,
  type RaspberryPiConfig,
  type RunnerBootConfig,
  type TransferPorts,
  type VirtualMediaConfig,
} from './config.ts';
export type { DeployPages, NetbootBoot } from './deploy-pages.ts';
export {
  declinedMsDefault,
  dhcpListenDefault,
  leaseSecondsDefault,
  leaseSecondsLimits,
  otherServerDefault,
  type ProxyDhcpConfig,
  type ReservationDhcpConfig,
} from './dhcp-config.ts';
export type { DhcpFault } from './dhcp-server.ts';
export { isOwnMedium } from './medium-name.ts';
export type {
  BootGrant,
  BootHost,
  BootMemory,
  DiscoveryBoot,
  DiscoveryMemory,
} from './memory.ts';
export type { BootMeter } from './meter.ts';
export {
  type BootGate,
  makeBootGate,
  type NetbootObservation,
  type NetbootStage,
} from './observation.ts';
export { type BootDecision, bootDecision, bootProfileOfHost } from './permission.ts';
export { type BootProfile, type Loaders, unknownProfile } from './profiles.ts';
export { answerWaiting, type BootDependencies, type BootServices, startBoot } from './start.ts';
