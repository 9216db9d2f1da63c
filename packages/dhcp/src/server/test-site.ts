/** A server without sockets, and clients that speak to it: the setup for tests of the decision. */

import type { DhcpBootPermission } from '../boot-parts.ts';
import { asMac } from '../mac.ts';
import { dhcpOption, readOption, writeOption } from '../options.ts';
import { type DhcpPacket, decodeDhcp, encodeDhcp } from '../packet.ts';
import { type AddressPlan, type AddressPlanSettings, makeAddressPlan } from './address-plan.ts';
import { LeaseBook } from './lease-book.ts';
import { readServerRequest } from './request.ts';
import { type ServerDecision, type ServerSettings, serve } from './serve.ts';

export const serverAddress = '10.77.0.1';
export const leaseSeconds = 3_600;
export const declinedMs = 600_000;

export const mac = {
  one: asMac('52:54:00:77:00:01'),
  two: asMac('52:54:00:77:00:02'),
  three: asMac('52:54:00:77:00:03'),
  reserved: asMac('52:54:00:77:00:10'),
  stranger: asMac('52:54:00:77:00:99'),
  otherStranger: asMac('52:54:00:77:00:98'),
} as const;

export const reservedAddress = '10.77.0.50';

/** Ten addresses for known hosts, of which one is reserved; four for strangers. */
export const usualPlan: AddressPlanSettings = {
  network: '10.77.0.0/24',
  reservations: [{ mac: mac.reserved, address: reservedAddress }],
  range: { first: '10.77.0.50', last: '10.77.0.59' },
  discovery: { first: '10.77.0.200', last: '10.77.0.203' },
};

export function planOf(settings: AddressPlanSettings): AddressPlan {
  const plan = makeAddressPlan(settings, [{ whose: 'the server', address: serverAddress }]);
  if (plan.kind === 'bad') throw new Error(plan.problem.text);
  return plan.value;
}

export function settingsOf(plan: AddressPlan): ServerSettings {
  return {
    serverAddress,
    plan,
    subnet: {
      leaseSeconds,
      routers: ['10.77.0.254'],
      nameServers: ['10.77.0.1', '10.77.0.2'],
      domainName: 'rack.example',
    },
    declinedMs,
    loadersOf: () => ({ bios: 'undionly.kpxe', uefiX64: 'snponly.efi' }),
    scriptUrl: (one) => `http://10.77.0.1:8080/boot/${one}/script.ipxe`,
    loaderUrl: (one, loader) => `http://10.77.0.1:8080/boot/${one}/files/${loader}`,
    loaderPath: (one, loader) => `${one}/${loader}`,
    servesRaspberryPi: true,
    broadcastAddress: '255.255.255.255',
    clientPort: 68,
    relayPort: 67,
  };
}

export type Message = Partial<Omit<DhcpPacket, 'options'>> & {
  readonly type?: 'discover' | 'request' | 'decline' | 'release' | 'inform' | 'offer' | 'ack';
  readonly requested?: string;
  readonly server?: string;
  readonly more?: readonly (readonly [number, Uint8Array])[];
};

const unset = '0.0.0.0';

/** A packet of the client `whose`, in decoded form. */
export function packetOf(whose: string, message: Message): DhcpPacket {
  const { type, requested, server, more = [], ...fields } = message;
  const packet: DhcpPacket = {
    op: 'request',
    hardwareType: 1,
    hops: 0,
    transactionId: 0x1234_5678,
    seconds: 0,
    flags: 0,
    clientAddress: unset,
    yourAddress: unset,
    nextServerAddress: unset,
    relayAddress: unset,
    hardwareAddress: Uint8Array.from(whose.split(':'), (pair) => Number.parseInt(pair, 16)),
    serverName: '',
    bootFile: '',
    options: new Map([
      ...(type === undefined ? [] : [writeOption(dhcpOption.messageType, type)]),
      ...(requested === undefined ? [] : [writeOption(dhcpOption.requestedAddress, requested)]),
      ...(server === undefined ? [] : [writeOption(dhcpOption.serverIdentifier, server)]),
      ...more,
    ]),
    ...fields,
  };
  return decodeDhcp(encodeDhcp(packet));
}

/** A server with a book and a clock of its own. */
export class TestSite {
  readonly settings: ServerSettings;
  book = new LeaseBook();
  nowMs = 1_700_000_000_000;
  quiet = false;
  permission: DhcpBootPermission = 'unknownHost';
  readonly known: Set<string>;

  constructor(
    plan: AddressPlanSettings = usualPlan,
    known: readonly string[] = [mac.one, mac.two],
  ) {
    this.settings = settingsOf(planOf(plan));
    this.known = new Set(known);
  }

  /** Decides about a packet and puts its changes into the book. */
  hear(packet: DhcpPacket, from = unset): ServerDecision {
    const received = readServerRequest(packet, { address: from, port: 68 });
    if (received.kind !== 'asked') throw new Error(`not asked: ${JSON.stringify(received)}`);
    const { book, nowMs, quiet, permission } = this;
    const isKnown = (one: string): boolean => this.known.has(one);
    const state = { book, nowMs, quiet, permission, isKnown };
    const decision = serve(received.request, state, this.settings);
    book.apply(decision.changes);
    return decision;
  }

  say(whose: string, message: Message): ServerDecision {
    return this.hear(packetOf(whose, message));
  }

  /** The four messages of a new client; throws when one of the answers is missing. */
  lease(whose: string): string {
    const offered = answerOf(this.say(whose, { type: 'discover' })).yourAddress;
    const request = { type: 'request', requested: offered, server: serverAddress } as const;
    const ack = answerOf(this.say(whose, request));
    if (typeOf(ack) !== 'ack' || ack.yourAddress !== offered) throw new Error('no lease');
    return offered;
  }

  /** Another process with the records of the last one. */
  restart(): void {
    const written = JSON.stringify(this.book.records(this.nowMs));
    this.book = LeaseBook.from(JSON.parse(written));
  }
}

/** The packet that answers; throws when there is none. */
export function answerOf({ reply, reason }: ServerDecision): DhcpPacket {
  if (reply === undefined) throw new Error(`silence: ${reason}`);
  return decodeDhcp(encodeDhcp(reply.packet));
}

export function typeOf(packet: DhcpPacket): string | undefined {
  return readOption(packet, dhcpOption.messageType);
}
