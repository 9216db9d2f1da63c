/**
 * A client's request to an address server (RFC 2131 §4.3, §4.4). The requests of four client states
 * differ only in the fields that are filled; this module is the one place that distinguishes them.
 */
import { DecodeError } from '@rackwright/bytes';
import type { Peer, Silence } from '../answer.ts';
import { type BootAsker, readPxe } from '../boot-parts.ts';
import { bootClient } from '../client.ts';
import { isEthernet, macOf } from '../identifiers.ts';
import type { Mac } from '../mac.ts';
import { dhcpOption, readOption } from '../options.ts';
import type { DhcpPacket } from '../packet.ts';
import { type IgnoredOption, SideOptions } from '../side-options.ts';

const unset = '0.0.0.0';

/** Table 4 of RFC 2131, and the messages that are no request. */
export type DhcpQuestion =
  | { readonly kind: 'discover'; readonly wish: string | undefined }
  | { readonly kind: 'selecting'; readonly server: string; readonly address: string }
  | { readonly kind: 'initReboot'; readonly address: string }
  /** Renewing or rebinding: the client uses the address. */
  | { readonly kind: 'extending'; readonly address: string }
  | { readonly kind: 'decline'; readonly server: string; readonly address: string }
  | { readonly kind: 'release'; readonly server: string; readonly address: string }
  | { readonly kind: 'inform'; readonly address: string };

export interface ServerRequest {
  readonly packet: DhcpPacket;
  readonly from: Peer;
  /** Lower case, with colons. */
  readonly mac: Mac;
  readonly question: DhcpQuestion;
  /** Absent when it is no boot firmware. */
  readonly boot: BootAsker | undefined;
  /** Options that could not be decoded, and count as not there. */
  readonly ignored: readonly IgnoredOption[];
}

/** The answer of another server to us, for example to a probe of ours. */
export interface OtherAnswer {
  readonly kind: 'otherAnswer';
  readonly packet: DhcpPacket;
  readonly server: string;
  /** The address that it gives. */
  readonly address: string;
}

/**
 * Classifies a packet that came to the server's port. Total: the answer is silence when the request
 * is unclear. Other options that cannot be decoded count as absent.
 */
export function readServerRequest(
  packet: DhcpPacket,
  from: Peer,
): { readonly kind: 'asked'; readonly request: ServerRequest } | OtherAnswer | Silence {
  if (!isEthernet(packet)) return silence('not Ethernet');
  try {
    if (packet.op === 'reply') return otherAnswer(packet);
    const side = new SideOptions(packet);
    const question = readAsked(packet, from, side);
    if (question.kind === 'silence') return question;
    const mac = macOf(packet);
    const client = bootClient(side, mac);
    const boot = client && { client, mac, pxe: readPxe(side, client) };
    const { ignored } = side;
    return { kind: 'asked', request: { packet, from, mac, question, boot, ignored } };
  } catch (error) {
    if (error instanceof DecodeError) return silence(error.message);
    throw error;
  }
}

function readAsked(packet: DhcpPacket, from: Peer, side: SideOptions): DhcpQuestion | Silence {
  const messageType = readOption(packet, dhcpOption.messageType);
  // Which address a client would like is no part of this question.
  if (messageType === 'discover') {
    return { kind: 'discover', wish: side.read(dhcpOption.requestedAddress) };
  }
  const server = readOption(packet, dhcpOption.serverIdentifier);
  const requested = readOption(packet, dhcpOption.requestedAddress);
  const inUse = packet.clientAddress === unset ? undefined : packet.clientAddress;
  switch (messageType) {
    case 'request':
      return readRequest(server, requested, inUse);
    case 'decline':
      if (server === undefined || requested === undefined) return silence('a decline of nothing');
      return { kind: 'decline', server, address: requested };
    case 'release':
      if (server === undefined || inUse === undefined) return silence('a release of nothing');
      return { kind: 'release', server, address: inUse };
    case 'inform': {
      const address = inUse ?? (from.address === unset ? undefined : from.address);
      return address === undefined
        ? silence('an inform without an address')
        : { kind: 'inform', address };
    }
    case 'offer':
    case 'ack':
    case 'nak':
    case undefined:
      return silence(`${messageType ?? 'BOOTP'} from a client`);
  }
}

function readRequest(
  server: string | undefined,
  requested: string | undefined,
  inUse: string | undefined,
): DhcpQuestion | Silence {
  const address = requested ?? inUse;
  if (address === undefined) return silence('a request for no address');
  if (server !== undefined) return { kind: 'selecting', server, address };
  return requested === undefined || inUse !== undefined
    ? { kind: 'extending', address: inUse ?? address }
    : { kind: 'initReboot', address };
}

/** Offers of proxies give no address: they are no other server. */
function otherAnswer(packet: DhcpPacket): OtherAnswer | Silence {
  const messageType = readOption(packet, dhcpOption.messageType);
  const server = readOption(packet, dhcpOption.serverIdentifier);
  const gives = messageType === 'offer' || messageType === 'ack';
  if (!gives || server === undefined || packet.yourAddress === unset) return silence('a reply');
  return { kind: 'otherAnswer', packet, server, address: packet.yourAddress };
}

function silence(reason: string): Silence {
  return { kind: 'silence', reason };
}
