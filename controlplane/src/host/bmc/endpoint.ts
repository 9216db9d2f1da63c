/** Where a BMC is reached, and whether two ways of saying so mean the same one. Pure. */
import { type BmcEndpoint, BmcProtocol } from '@rackwright/api';

const ipmiPort = 623;
const redfishPort = 443;

/** The port of a BMC: its own, or the usual one of its protocol. */
export function bmcPort({ port, protocol }: BmcEndpoint): number {
  return port ?? (isRedfish(protocol) ? redfishPort : ipmiPort);
}

/** "10.0.0.1:623" */
export function endpointText(bmc: BmcEndpoint): string {
  return `${bmc.address}:${bmcPort(bmc)}`;
}

/** Behind one address, two ports of one protocol are two BMCs; two protocols may be one. */
export function mayBeSameBmc(a: BmcEndpoint, b: BmcEndpoint): boolean {
  if (a.address !== b.address) return false;
  return isRedfish(a.protocol) !== isRedfish(b.protocol) || bmcPort(a) === bmcPort(b);
}

function isRedfish(protocol: BmcProtocol): boolean {
  return protocol === BmcProtocol.REDFISH;
}
