/** The endpoint of a BMC, and whether two endpoints mean the same BMC. Pure. */
import type { BmcEndpoint } from '@rackwright/messages';
import { protocolOf } from './protocols.ts';

/** The port of a BMC: its own, or the default one of its protocol. */
export function bmcPort({ port, protocol }: BmcEndpoint): number {
  return port ?? protocolOf(protocol).port;
}

/** "10.0.0.1:623" */
export function endpointText(bmc: BmcEndpoint): string {
  return `${bmc.address}:${bmcPort(bmc)}`;
}

/** The switch of one host: for a device with several sockets, one of them. */
export function switchText(bmc: BmcEndpoint): string {
  return `${endpointText(bmc)}${bmc.webhook?.onPath ?? ''}`;
}

/** Behind one address, two ports of the same protocol are two BMCs; two protocols may be one. */
export function mayBeSameBmc(a: BmcEndpoint, b: BmcEndpoint): boolean {
  if (a.address === '') return false;
  if (a.address !== b.address) return false;
  return protocolOf(a.protocol) !== protocolOf(b.protocol) || switchText(a) === switchText(b);
}
