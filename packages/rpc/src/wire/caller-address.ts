/** Callers as calls name their peers: "address:port". */
import { networkOf } from '@rackwright/platform';

/** "address:port" without the port. */
export function hostOfPeer(peerAddress: string): string {
  return peerAddress.slice(0, Math.max(0, peerAddress.lastIndexOf(':')));
}

/** The network of "address:port", as calls name their peers. */
export function networkOfPeer(peerAddress: string): string {
  return networkOf(hostOfPeer(peerAddress));
}
