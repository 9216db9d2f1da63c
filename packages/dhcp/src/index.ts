/** DHCPv4 for booting: packets, options, boot clients, and the answers of proxy and server. */
export {
  type AnswerPaths,
  answerBootRequest,
  type BootRequest,
  type Peer,
  type ProxyAnswer,
  type ProxyService,
  type ProxySettings,
  readBootRequest,
  type Silence,
} from './answer.ts';
export type { BootAsker, BootPermission, BootSettings } from './boot-parts.ts';
export { type BootClient, type BootClientKind, type BootPlatform, bootClient } from './client.ts';
export { packetBytesMax } from './limits.ts';
export { dhcpOption, type OptionKind, readOption, writeOption } from './options.ts';
export { type DhcpPacket, decodeDhcp, encodeDhcp } from './packet.ts';
