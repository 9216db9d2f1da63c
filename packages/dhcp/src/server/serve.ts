/**
 * What an address server does with a packet (RFC 2131 §4.3): known hosts, reservations and, where a
 * range is set aside for them, strangers. Pure: the known state goes in, the answer and the changes
 * of the book come out.
 *
 * V1 Clients are distinguished by MAC alone: firmware, boot loader and ramdisk of one host name
 *    themselves differently, and it shall keep one address through all of them.
 * V2 A client that is not served gets nothing, not even a refusal: it is another server's.
 * V3 An offer waits for nothing. The client itself finds out whether an address is in use, and then
 *    declines it.
 * V4 While another server is active only running leases are extended: nothing is offered, nothing
 *    refused, no new client gets an address.
 * V5 The boot parts are the proxy's; they are the same with an address and without.
 */

import { type BootSettings, bootParts, type DhcpBootPermission } from '../boot-parts.ts';
import type { Mac } from '../mac.ts';
import { subnetHas } from '../subnet.ts';
import { type AddressPlan, isOurRelay } from './address-plan.ts';
import {
  type AddressState,
  changesFor,
  chooseAddress,
  isServed,
  mayHave,
} from './choose-address.ts';
import type { LeaseChange, LeaseView } from './lease-book.ts';
import {
  grantReply,
  type Reply,
  type ReplyPaths,
  refusalReply,
  type SubnetSettings,
} from './reply.ts';
import type { DhcpQuestion, ServerRequest } from './request.ts';

export interface ServerSettings extends BootSettings, ReplyPaths {
  readonly plan: AddressPlan;
  readonly subnet: SubnetSettings;
  /** How long an address is kept out of use after a client found another one using it. */
  readonly declinedMs: number;
}

/** The state that a decision depends on, beside the packet. */
export interface ServerState {
  readonly book: LeaseView;
  /** Wall time, milliseconds; must not go back. */
  readonly nowMs: number;
  /** True while another server is at work. */
  readonly quiet: boolean;
  /** Whether a MAC is that of a known host. */
  readonly isKnown: (mac: Mac) => boolean;
  /** Whether the client may boot the runner. */
  readonly permission: DhcpBootPermission;
  /**
   * Earlier grants for this very question, by the granted lease; this call adds to them. Absent:
   * nothing is remembered.
   */
  readonly granted?: Map<string, GrantedBefore>;
}

/** An answer, and why it is that one. */
export interface GrantedBefore {
  readonly reply: Reply;
  readonly reason: string;
}

/** A message for people beside the answer. */
export type ServerNotice =
  | { readonly kind: 'otherServer'; readonly serverAddress: string }
  | { readonly kind: 'declined'; readonly mac: Mac; readonly address: string }
  | { readonly kind: 'noAddressLeft'; readonly mac: Mac };

export interface ServerDecision {
  readonly reply: Reply | undefined;
  readonly changes: readonly LeaseChange[];
  readonly notice: ServerNotice | undefined;
  /** Why there is no reply, or the kind of reply. */
  readonly reason: string;
}

/** How long an address waits for the client that it was offered to. */
const offerHoldMs = 60_000;

/** The client's clock and ours may differ by this much over one lease. */
const graceMs = 60_000;

/** Answers to one question that are remembered: it has one address, and may boot or not. */
const grantedMax = 4;

/** Addresses that are out of use at once because one client declined them. */
const setAsideByOneMax = 4;

/** The decision about one packet; total over everything that `readServerRequest` lets through. */
export function serve(
  request: ServerRequest,
  state: ServerState,
  settings: ServerSettings,
): ServerDecision {
  const { plan } = settings;
  if (!isOurRelay(plan, request.packet.relayAddress)) return nothing('a relay of another network');
  const { book, nowMs, isKnown } = state;
  const context: RequestContext = {
    request,
    state,
    settings,
    addresses: { plan, book, nowMs, isKnown },
  };
  const other = otherServer(context);
  if (other !== undefined) return other;
  if (!isServed(context.addresses, request.mac)) return nothing('unknown host');
  if (state.quiet && !isRunning(context)) return nothing('another server is at work');
  return decide(context, request.question);
}

interface RequestContext {
  readonly request: ServerRequest;
  readonly state: ServerState;
  readonly settings: ServerSettings;
  readonly addresses: AddressState;
}

function decide(context: RequestContext, question: DhcpQuestion): ServerDecision {
  switch (question.kind) {
    case 'discover':
      return offer(context, question.wish);
    case 'selecting':
      return mayHave(context.addresses, context.request.mac, question.address)
        ? bind(context, question.address)
        : refuse(context, question.address);
    case 'initReboot':
    case 'extending':
      return confirm(context, question.address);
    case 'decline':
      return decline(context, question.address);
    case 'release':
      return release(context, question.address);
    case 'inform':
      return answer(context, 'ack', undefined, []);
  }
}

/**
 * A client that names another server took its offer: the only trace of that server that reaches
 * us, as answers go to the clients' port. It counts when the client is one of ours, or the
 * address is.
 */
function otherServer({ request, settings, addresses }: RequestContext): ServerDecision | undefined {
  const { question, mac } = request;
  if (!('server' in question) || question.server === settings.serverAddress) return undefined;
  const ours = isServed(addresses, mac) || subnetHas(settings.plan.subnet, question.address);
  if (question.kind !== 'selecting' || !ours) return nothing('meant for another server');
  const lease = addresses.book.leaseOf(mac);
  const changes: LeaseChange[] =
    lease === undefined || lease.bound || addresses.isKnown(mac)
      ? []
      : [{ kind: 'forgotten', mac }];
  const notice = { kind: 'otherServer', serverAddress: question.server } as const;
  return { reply: undefined, changes, notice, reason: 'chose another server' };
}

/** V4: the requests that are still served beside another server. */
function isRunning({ request, addresses }: RequestContext): boolean {
  const { question, mac } = request;
  if (question.kind === 'decline' || question.kind === 'release') return true;
  const lease = addresses.book.leaseOf(mac);
  if (question.kind !== 'extending' || lease?.address !== question.address) return false;
  return (
    lease.bound && lease.untilMs > addresses.nowMs && mayHave(addresses, mac, question.address)
  );
}

function offer(context: RequestContext, wish: string | undefined): ServerDecision {
  const { request, addresses } = context;
  const { mac } = request;
  const address = chooseAddress(addresses, mac, wish);
  if (address === undefined) {
    const notice = { kind: 'noAddressLeft', mac } as const;
    return { reply: undefined, changes: [], notice, reason: 'no address left' };
  }
  const before = addresses.book.leaseOf(mac);
  const offeredUntilMs = addresses.nowMs + offerHoldMs;
  // A running lease goes on: the client may return to it without accepting this offer.
  const lease =
    before?.address === address
      ? { ...before, untilMs: Math.max(before.untilMs, offeredUntilMs) }
      : { mac, address, bound: false, untilMs: offeredUntilMs };
  return answer(context, 'offer', address, changesFor(addresses, 'offered', lease));
}

function bind(context: RequestContext, address: string): ServerDecision {
  const { addresses, settings, request } = context;
  const untilMs = addresses.nowMs + settings.subnet.leaseSeconds * 1_000 + graceMs;
  const lease = { mac: request.mac, address, bound: true, untilMs };
  return answer(context, 'ack', address, changesFor(addresses, 'leased', lease));
}

/**
 * A client that takes an address for its own already. A known host is on record even when its lease
 * is not (a file that was lost): it keeps an address that nobody else has. For a stranger without a
 * lease we have no record and stay silent, unless the address is of another network.
 */
function confirm(context: RequestContext, address: string): ServerDecision {
  const { addresses, request, settings } = context;
  const { mac } = request;
  const lease = addresses.book.leaseOf(mac);
  const onRecord =
    lease !== undefined || addresses.isKnown(mac) || settings.plan.reservedFor.has(mac);
  if (!onRecord) {
    return subnetHas(settings.plan.subnet, address)
      ? nothing('no record of this client')
      : refuse(context, address);
  }
  return mayHave(addresses, mac, address) ? bind(context, address) : refuse(context, address);
}

/**
 * Only the client's own address, and few of them: a client that takes every address to be in
 * use (a switch that answers for all of them) must not use up the range.
 */
function decline(
  { request, addresses, settings }: RequestContext,
  address: string,
): ServerDecision {
  const { mac } = request;
  const { book, nowMs } = addresses;
  if (book.leaseOf(mac)?.address !== address) return nothing('declines what it has not');
  const changes: LeaseChange[] = [{ kind: 'forgotten', mac }];
  if (book.setAsideBy(mac, nowMs) < setAsideByOneMax) {
    changes.push({ kind: 'setAside', address, mac, untilMs: nowMs + settings.declinedMs });
  }
  return {
    reply: undefined,
    changes,
    notice: { kind: 'declined', mac, address },
    reason: 'declined',
  };
}

/** The address stays with the MAC until another client needs it (RFC 2131 §4.3.4). */
function release({ request, addresses }: RequestContext, address: string): ServerDecision {
  const { mac } = request;
  const lease = addresses.book.leaseOf(mac);
  if (lease?.address !== address) return nothing('releases what it has not');
  const released = { ...lease, bound: false, untilMs: addresses.nowMs };
  return {
    reply: undefined,
    changes: [{ kind: 'leased', lease: released }],
    notice: undefined,
    reason: 'released',
  };
}

function answer(
  context: RequestContext,
  messageType: 'offer' | 'ack',
  address: string | undefined,
  changes: readonly LeaseChange[],
): ServerDecision {
  const { permission, granted } = context.state;
  // All that an answer depends on beside the question and the settings.
  const key = `${messageType} ${address ?? ''} ${permission} ${loaderOf(context)}`;
  const before = granted?.get(key);
  const made = before ?? grant(context, messageType, address);
  if (made === undefined) return nothing('identifiers that do not fit the answer');
  if (before === undefined && (granted?.size ?? grantedMax) < grantedMax) granted?.set(key, made);
  return { ...made, changes, notice: undefined };
}

/** The client's first loader, in words that distinguish all cases. */
function loaderOf({ request: { boot, mac }, settings }: RequestContext): string {
  if (boot === undefined) return 'boots nothing';
  const loaders = settings.loadersOf(mac);
  return loaders === undefined ? 'nobody knows' : `=${loaders[boot.client.platform] ?? ''}`;
}

/** Undefined when the client's identifiers would not fit. */
function grant(
  { request, state, settings }: RequestContext,
  messageType: 'offer' | 'ack',
  address: string | undefined,
): GrantedBefore | undefined {
  const { packet, boot } = request;
  const parts = boot && bootParts(boot, state.permission, settings);
  const granted = {
    messageType,
    address,
    subnet: settings.plan.subnet,
    settings: settings.subnet,
    boot: parts?.kind === 'boot' ? parts.parts : undefined,
  };
  const reply = grantReply(packet, granted, settings);
  if (reply === undefined) return undefined;
  return { reply, reason: parts?.kind === 'nothing' ? parts.reason : messageType };
}

function refuse({ request, settings }: RequestContext, address: string): ServerDecision {
  const reply = refusalReply(request.packet, `${address} is not yours here`, settings);
  return { reply, changes: [], notice: undefined, reason: `${address} refused` };
}

function nothing(reason: string): ServerDecision {
  return { reply: undefined, changes: [], notice: undefined, reason };
}
