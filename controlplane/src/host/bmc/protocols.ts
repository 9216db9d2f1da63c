/** How BMC protocols differ. A protocol without a row does not compile. */
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
  /** In the form for agents. */
  readonly id: BmcProtocolId | 'unknown';
  /** For people. */
  readonly name: string;
  /** The default port of the BMC. */
  readonly port: number;
  /** Whether a cipher suite can be chosen. */
  readonly hasCipherSuite: boolean;
  /** Whether the BMC has a certificate, which can be pinned. */
  readonly hasCertificate: boolean;
  /** Whether the BMC can list the drives of its machine. */
  readonly listsDrives: boolean;
  /** Whether a device can choose the next boot source. */
  readonly setsBoot: boolean;
  /** Whether the BMC has a virtual CD drive that loads from a URL. */
  readonly hasVirtualMedia: boolean;
  /** Only a person switches the machine: it has no address, and no credential. */
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

/** Of a newer version: agents do not take it for a known protocol. */
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

/** Unset means IPMI, as in the API. */
export function protocolOf(protocol: BmcProtocol = BmcProtocol.UNSPECIFIED): Protocol {
  const id = bmcProtocolId(protocol);
  return id === undefined ? unknown : protocols[id];
}

/** Whether a person replaces the host's BMC. */
export function isByHand({ bmc }: Pick<HostSpec, 'bmc'>): boolean {
  return bmc !== undefined && protocolOf(bmc.protocol).isByHand;
}

/** Whether the host would have another power switch, whose owner is not proved. */
export function isOtherSwitch(
  before: BmcEndpoint | undefined,
  after: BmcEndpoint | undefined,
): boolean {
  if (before === undefined || after === undefined || equals(BmcEndpointSchema, before, after)) {
    return false;
  }
  return !protocolOf(before.protocol).setsBoot || !protocolOf(after.protocol).setsBoot;
}
