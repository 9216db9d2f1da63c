/**
 * How the protocols of BMCs are called on the wire and by people, and the port of each. A protocol
 * without a row does not compile; nor does a table or switch over `BmcProtocolId` without its id.
 */
import { BmcProtocol } from './gen/rackwright/v1/host_pb.ts';

type Known = (typeof BmcProtocol)[keyof typeof BmcProtocol];

/** Unset means IPMI, as the API says. */
const ids = {
  [BmcProtocol.UNSPECIFIED]: 'ipmi',
  [BmcProtocol.IPMI]: 'ipmi',
  [BmcProtocol.REDFISH]: 'redfish',
} as const satisfies Readonly<Record<Known, string>>;

/** As `agent.v1.BmcAccess.protocol` and flags name it. */
export type BmcProtocolId = (typeof ids)[keyof typeof ids];

/** Where a BMC listens unless its endpoint says otherwise: RMCP+ (IPMI 2.0 §13.1), HTTPS. */
export const bmcPorts: Readonly<Record<BmcProtocolId, number>> = { ipmi: 623, redfish: 443 };

/** Undefined: a protocol of a newer version. */
export function bmcProtocolId(protocol: BmcProtocol): BmcProtocolId | undefined {
  return ids[protocol as Known];
}

export function isBmcProtocolId(text: string): text is BmcProtocolId {
  return Object.hasOwn(bmcPorts, text);
}
