/**
 * Parts that need the real sockets of this machine: ports, and certificates for their listeners.
 */
export { type SelfSigned, selfSigned } from './certificate.ts';
export { freePorts } from './ports.ts';
export {
  type SoftwareRegistry,
  type SoftwareRegistryOptions,
  startSoftwareRegistry,
} from './registry.ts';
export {
  type SocketSwitch,
  type SocketSwitchOptions,
  type SwitchFault,
  startSocketSwitch,
} from './socket-switch.ts';
