/** Where a BMC is reached, and whether two ways of saying so mean the same one. Pure. */
import type { BmcEndpoint } from '@rackwright/messages';
import { protocolOf } from './protocols.ts';

/** The port of a BMC: its own, or the usual one of its protocol. */
export function bmcPort({ port, protocol }: BmcEndpoint): number {
  return port ?? protocolOf(protocol).port;
}

/** "10.0.0.1:623" */
export function endpointText(bmc: BmcEndpoint): string {
  return `${bmc.address}:${bmcPort(bmc)}`;
}

/** What is one host's alone: of a device with many sockets, one of them. */
export function switchText(bmc: BmcEndpoint): string {
  return `${endpointText(bmc)}${bmc.webhook?.onPath ?? ''}`;
}

/** Behind one address, two ports of one protocol are two BMCs; two protocols may be one. */
export function mayBeSameBmc(a: BmcEndpoint, b: BmcEndpoint): boolean {
  if (a.address === '') return false;
  if (a.address !== b.address) return false;
  return protocolOf(a.protocol) !== protocolOf(b.protocol) || switchText(a) === switchText(b);
}
