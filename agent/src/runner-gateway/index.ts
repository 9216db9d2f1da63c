/**
 * The server that runners dial: recognizes them, gives them their orders and takes their reports.
 */
export { type BootCertificate, loadBootCertificate } from './certificate.ts';
export {
  type DispatcherLimits,
  defaultDispatcherLimits,
  RunnerDispatcher,
  type RunnerDispatcherParts,
} from './dispatcher.ts';
export type { EvidenceSigner } from './evidence.ts';
export {
  defaultGatewayLimits,
  type GatewayLimits,
  type GatewayParts,
  RunnerGateway,
} from './gateway.ts';
export { type HandOffSession, noHandOffs } from './hand-offs.ts';
export type { ImageOfOrder, RunnerOrder, RunnerOrders } from './link.ts';
export type { DiscoveryObserver } from './stranger.ts';
