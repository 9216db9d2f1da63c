/** What differs between the protocols that BMCs speak. One without a row does not compile. */
import { equals } from '@bufbuild/protobuf';
import {
  type BmcEndpoint,
  BmcEndpointSchema,
  BmcProtocol,
  type BmcProtocolId,
  bmcPorts,
  bmcProtocolId,
  byHand,
  type HostSpec,
} from '@rackwright/messages';

export interface Protocol {
  /** As agents are told it. */
  readonly id: BmcProtocolId | 'unknown';
  /** For people. */
  readonly name: string;
  /** Where a BMC listens unless its endpoint says otherwise. */
  readonly port: number;
  /** A cipher suite may be chosen. */
  readonly hasCipherSuite: boolean;
  /** The BMC shows a certificate, which may be pinned. */
  readonly hasCertificate: boolean;
  /** The BMC can list the drives of its machine. */
  readonly listsDrives: boolean;
  /** A device can choose what the machine boots from next. */
  readonly setsBoot: boolean;
  /** The BMC has a drive for CDs that it feeds from a URL. */
  readonly hasVirtualMedia: boolean;
  /** Nobody but a person switches the machine: it has no address, and no credential. */
  readonly isByHand: boolean;
}

const ipmi: Protocol = {
  id: 'ipmi',
  name: 'IPMI',
  port: bmcPorts.ipmi,
  hasCipherSuite: true,
  hasCertificate: false,
  listsDrives: false,
  setsBoot: true,
  hasVirtualMedia: false,
  isByHand: false,
};

const redfish: Protocol = {
  id: 'redfish',
  name: 'Redfish',
  port: bmcPorts.redfish,
  hasCipherSuite: false,
  hasCertificate: true,
  listsDrives: true,
  setsBoot: true,
  hasVirtualMedia: true,
  isByHand: false,
};

const webhook: Protocol = {
  id: 'webhook',
  name: 'webhook',
  port: bmcPorts.webhook,
  hasCipherSuite: false,
  hasCertificate: true,
  listsDrives: false,
  setsBoot: false,
  hasVirtualMedia: false,
  isByHand: false,
};

const manual: Protocol = {
  id: byHand,
  name: 'hand',
  port: 0,
  hasCipherSuite: false,
  hasCertificate: false,
  listsDrives: false,
  setsBoot: false,
  hasVirtualMedia: false,
  isByHand: true,
};

const protocols: Readonly<Record<BmcProtocolId, Protocol>> = { ipmi, redfish, webhook, manual };

/** Of a newer version: no agent takes it for another one. */
const unknown: Protocol = {
  id: 'unknown',
  name: 'an unknown protocol',
  port: 0,
  hasCipherSuite: false,
  hasCertificate: false,
  listsDrives: false,
  setsBoot: false,
  hasVirtualMedia: false,
  isByHand: false,
};

/** Unset means IPMI, as the API says. */
export function protocolOf(protocol: BmcProtocol = BmcProtocol.UNSPECIFIED): Protocol {
  const id = bmcProtocolId(protocol);
  return id === undefined ? unknown : protocols[id];
}

/** Whether a person stands in for the host's BMC. */
export function isByHand({ bmc }: Pick<HostSpec, 'bmc'>): boolean {
  return bmc !== undefined && protocolOf(bmc.protocol).isByHand;
}

/** Whether a host would be switched by something else, of which nothing proves whose it is. */
export function isOtherSwitch(
  before: BmcEndpoint | undefined,
  after: BmcEndpoint | undefined,
): boolean {
  if (before === undefined || after === undefined || equals(BmcEndpointSchema, before, after)) {
    return false;
  }
  return !protocolOf(before.protocol).setsBoot || !protocolOf(after.protocol).setsBoot;
}
