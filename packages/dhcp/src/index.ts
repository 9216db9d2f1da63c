/** DHCPv4 for booting: packets, options, boot clients, and the answers of proxy and server. */
export { addressNumber } from './address.ts';
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
export {
  type BootAsker,
  type BootSettings,
  type DhcpBootPermission,
  uBootScriptName,
} from './boot-parts.ts';
export { type BootClient, type BootClientKind, type BootPlatform } from './client.ts';
export { macOf } from './identifiers.ts';
export { asMac, canonicalMac, hyphenatedMac, type Mac } from './mac.ts';
export { dhcpOption, type OptionKind, readOption, writeOption } from './options.ts';
export { type DhcpPacket, decodeDhcp, encodeDhcp } from './packet.ts';
export { encodeAnswer } from './prepared.ts';
export { QuestionMemory, transactionIdOf } from './question-memory.ts';
export { isRaspberryPi } from './raspberry-pi.ts';
export {
  type AddressPlan,
  type AddressPlanSettings,
  isInPlan,
  type MadeAddressPlan,
  makeAddressPlan,
  type Reservation,
  type TakenAddress,
} from './server/address-plan.ts';
export {
  type Lease,
  LeaseBook,
  type LeaseChange,
  type LeaseRecords,
  type SetAside,
} from './server/lease-book.ts';
export { afterOtherServer, isQuiet, type Quiet, serving } from './server/other-server.ts';
export type { SubnetSettings } from './server/reply.ts';
export { type OtherAnswer, readServerRequest, type ServerRequest } from './server/request.ts';
export {
  type GrantedBefore,
  type ServerDecision,
  type ServerNotice,
  type ServerSettings,
  type ServerState,
  serve,
} from './server/serve.ts';
export type { IgnoredOption } from './side-options.ts';
export {
  type AddressRange,
  type Subnet,
  subnetHas,
  subnetsMeet,
} from './subnet.ts';
