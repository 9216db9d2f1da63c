/** TFTP as a server of read requests: packets, options and transfers, without sockets. */
export { type NegotiatedOptions, type OptionLimits } from './options.ts';
export {
  type DatagramParts,
  decodePacket,
  encodePacket,
  isError,
  isReadRequest,
  type TftpOption,
  type TftpPacket,
  type TftpRequest,
  tftpError,
} from './packet.ts';
export {
  decideRequest,
  type FileLookup,
  type RequestDecision,
  type TftpLimits,
  type TransferLoad,
  tftpLimitsDefault,
} from './request.ts';
export { type RetryLimits, Transfer, type TransferEnd, type TransferStep } from './transfer.ts';
export {
  type PortUse,
  type UsedPortLimits,
  UsedPorts,
  usedPortLimitsDefault,
} from './used-ports.ts';
