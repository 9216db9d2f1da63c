/**
 * The names of BMC protocols on the wire and for people, and the port of each. A protocol without a
 * row does not compile; nor does a table or switch over `BmcProtocolId` without its id.
 */
import { BmcProtocol } from './gen/rackwright/v1/host_pb.ts';

type KnownProtocol = (typeof BmcProtocol)[keyof typeof BmcProtocol];

/** Unset means IPMI, as the API says. */
const ids = {
  [BmcProtocol.UNSPECIFIED]: 'ipmi',
  [BmcProtocol.IPMI]: 'ipmi',
  [BmcProtocol.REDFISH]: 'redfish',
  [BmcProtocol.WEBHOOK]: 'webhook',
  [BmcProtocol.MANUAL]: 'manual',
} as const satisfies Readonly<Record<KnownProtocol, string>>;

/** The id in `agent.v1.BmcAccess.protocol` and in flags. */
export type BmcProtocolId = (typeof ids)[keyof typeof ids];

/** A person replaces the BMC: there is no protocol and no driver. */
export const byHand = 'manual' satisfies BmcProtocolId;

/** The protocols in which agents speak to a device. */
export type SpokenProtocolId = Exclude<BmcProtocolId, typeof byHand>;

/** The default port of a BMC: RMCP+ (IPMI 2.0 §13.1), HTTPS. */
export const bmcPorts: Readonly<Record<SpokenProtocolId, number>> = {
  ipmi: 623,
  redfish: 443,
  webhook: 443,
};

/** All of them, as flags and files name them. */
export const bmcProtocolIds: readonly BmcProtocolId[] = [...new Set(Object.values(ids))];

/** Undefined: a protocol of a newer version. */
export function bmcProtocolId(protocol: BmcProtocol): BmcProtocolId | undefined {
  return ids[protocol as KnownProtocol];
}

export function isSpokenProtocolId(text: string): text is SpokenProtocolId {
  return Object.hasOwn(bmcPorts, text);
}
