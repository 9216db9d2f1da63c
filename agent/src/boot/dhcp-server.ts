/**
 * The DHCP server on a real socket: one decision each packet, the answer at once, the leases on
 * disk soon after.
 *
 * X1 Nothing is awaited between a request and its answer, and no packet can stop the next.
 * X2 While another server is active this one is silent and says so; it resumes by itself. The other
 *    server is active when it answers our own question. We ask as a relay would, so that the answer
 *    is sent to us. A request that names another server is no proof, because any machine may send
 *    such a request: it only makes us ask at once.
 */
import {
  afterOtherServer,
  decodeDhcp,
  dhcpOption,
  encodeAnswer,
  encodeDhcp,
  type GrantedBefore,
  isQuiet,
  isRaspberryPi,
  LeaseBook,
  type Mac,
  macOf,
  type OtherAnswer,
  QuestionMemory,
  type Quiet,
  readOption,
  readServerRequest,
  type ServerDecision,
  type ServerNotice,
  type ServerRequest,
  type ServerSettings,
  serve,
  serving,
  subnetHas,
  transactionIdOf,
} from '@rackwright/dhcp';
import type { Cancel, UdpPeer, UdpSocket } from '@rackwright/platform';
import type { BootEvents } from './boot-events.ts';
import type { ReservationDhcpConfig } from './dhcp-config.ts';
import { IgnoredOptions } from './ignored-options.ts';
import { LeaseFile, type LeaseFileParts, readLeases, steadyTime } from './lease-file.ts';
import { LineBudget } from './line-budget.ts';
import type { BootMemory } from './memory.ts';
import type { BootMeter } from './meter.ts';
import type { AddressWatch, BootGate } from './observation.ts';
import { type BootDecision, bootDecision, isAboutHost, permissionOf } from './permission.ts';
import { probeMac, probePacket } from './probe.ts';
import { RaspberryPiRequests } from './raspberry-pi.ts';

/** A fault that keeps hosts from their addresses, for people. */
export type DhcpFault = ServerNotice & {
  /** Wall time, milliseconds since the Unix epoch. */
  readonly atMs: number;
};

export interface DhcpServerParts extends LeaseFileParts {
  readonly bootGate: BootGate;
  readonly bootEvents: BootEvents;
  readonly sawAddress: AddressWatch;
  /** Read at every request; returns at once. */
  memory(): BootMemory;
  /** Called synchronously; must be quick. */
  onFault(fault: DhcpFault): void;
  /** The other server of an earlier fault is gone; as onFault. */
  onServerGone(serverAddress: string): void;
  readonly settings: ServerSettings;
  readonly dhcp: ReservationDhcpConfig;
  readonly meter?: BootMeter;
}

const faultLinesPerMinuteMax = 30;

/** Questions of known clients; a client sends a few different ones at each boot. */
const questionsMax = 2_048;

/** A question that was decoded before, and the earlier grants for it. */
interface Question {
  readonly request: ServerRequest;
  readonly granted: Map<string, GrantedBefore>;
}

/** The minimum time between two questions, however many requests suggest another server. */
const suspicionPauseMs = 2_000;

export class DhcpServer {
  readonly #parts: DhcpServerParts;
  readonly #book: LeaseBook;
  readonly #file: LeaseFile;
  readonly #nowMs: () => number;
  readonly #faultLines: LineBudget;
  readonly #ownProbe: string;
  readonly #ignored: IgnoredOptions;
  readonly #raspberryPis: RaspberryPiRequests;
  readonly #questions = new QuestionMemory<Question>(questionsMax);
  #quiet: Quiet = serving;
  #probeTimer: Cancel | undefined;
  /** The last question that was sent; its time is wall time, milliseconds. */
  #asked: { readonly transactionId: number; readonly atMs: number } | undefined;

  /** Reads the leases that the previous start of the agent stored. */
  static async open(parts: DhcpServerParts): Promise<DhcpServer> {
    const { records, writtenAtMs } = await readLeases(parts, parts.settings.plan);
    const nowMs = steadyTime(parts.clock, writtenAtMs);
    return new DhcpServer(parts, LeaseBook.from(records), nowMs);
  }

  private constructor(parts: DhcpServerParts, book: LeaseBook, nowMs: () => number) {
    this.#parts = parts;
    this.#book = book;
    this.#nowMs = nowMs;
    this.#file = new LeaseFile(parts, book, nowMs);
    this.#faultLines = new LineBudget(parts.clock, faultLinesPerMinuteMax, 60_000);
    this.#ownProbe = probeMac(parts.settings.serverAddress);
    this.#ignored = new IgnoredOptions(parts);
    this.#raspberryPis = new RaspberryPiRequests(parts.clock);
  }

  /** Throws DecodeError when the datagram is no DHCP packet. */
  receive(socket: UdpSocket, datagram: Uint8Array, from: UdpPeer): void {
    const known = this.#questions.find(datagram);
    if (known !== undefined) return this.#answer(socket, datagram, known);
    const read = readServerRequest(decodeDhcp(datagram), from);
    switch (read.kind) {
      case 'silence':
        return;
      case 'otherAnswer':
        return this.#noteOtherServer(read);
      case 'asked': {
        const request = this.#raspberryPis.recognise(read.request);
        // Our own broadcasts arrive here as well.
        if (request.mac === this.#ownProbe) return;
        this.#ignored.tell(request.mac, request.ignored);
        const question: Question = { request, granted: new Map() };
        this.#answer(socket, datagram, question);
        const isKept = question.granted.size > 0 && isWhole(read.request);
        if (isKept && isAboutHost(this.#decisionOn(request.mac))) {
          this.#questions.keep(datagram, question);
        }
      }
    }
  }

  #answer(socket: UdpSocket, datagram: Uint8Array, { request, granted }: Question): void {
    if (request.boot === undefined) this.#parts.sawAddress(request.mac);
    this.#noteRaspberryPi(request, datagram);
    const { permitted, ...decision } = this.#decide(request, granted);
    const { reply, notice } = decision;
    if (notice?.kind === 'otherServer') this.#suspect(socket, notice.serverAddress);
    this.#parts.meter?.dhcpAsked('server', reply !== undefined);
    this.#tellExchange(request, permitted, decision);
    if (reply === undefined) return;
    socket.send(encodeAnswer(reply.packet, transactionIdOf(datagram)), reply.to);
  }

  #noteRaspberryPi({ question, boot, mac }: ServerRequest, datagram: Uint8Array): void {
    if (boot?.client.kind !== 'raspberryPi' || question.kind !== 'discover') return;
    if (!this.#parts.settings.servesRaspberryPi) return;
    this.#raspberryPis.discovered(mac, transactionIdOf(datagram));
  }

  /** Asks again and again whether there is another server, from now on. */
  probe(socket: UdpSocket): void {
    const { clock, dhcp } = this.#parts;
    const { probeMs } = dhcp.otherServer;
    if (probeMs === 0) return;
    this.#ask(socket);
    this.#isQuiet();
    this.#probeTimer = clock.after(probeMs, () => this.probe(socket));
  }

  /** Writes the last leases down. */
  async close(): Promise<void> {
    this.#probeTimer?.();
    await this.#file.close();
  }

  #tellExchange(
    { mac, question: { kind }, boot }: ServerRequest,
    permitted: BootDecision,
    { reply, reason }: ServerDecision,
  ): void {
    const messageType = kind === 'discover' ? kind : 'request';
    if (kind === 'decline' || kind === 'release' || kind === 'inform') return;
    const answer = reply && readOption(reply.packet, dhcpOption.messageType);
    this.#parts.bootEvents.dhcp(permitted, {
      ...{ mac, messageType, client: boot?.client.kind, givesAddresses: true },
      isGranted: answer !== undefined && answer !== 'nak',
      problem: reason,
    });
  }

  #decide(
    request: ServerRequest,
    granted: Map<string, GrantedBefore>,
  ): ServerDecision & { readonly permitted: BootDecision } {
    const { bootGate, log, settings } = this.#parts;
    const { mac, question, boot } = request;
    // A boot is observed when it begins; the request that follows is part of it.
    const isBoot = boot !== undefined && question.kind === 'discover';
    const permitted = isBoot ? bootGate(mac, 'dhcp') : this.#decisionOn(mac);
    const permission = permissionOf(permitted);
    const isKnown = (one: Mac): boolean => isAboutHost(this.#decisionOn(one));
    const quiet = this.#isQuiet();
    const nowMs = this.#nowMs();
    const state = { book: this.#book, nowMs, quiet, permission, isKnown, granted };
    const decision = serve(request, state, settings);
    this.#book.apply(decision.changes);
    if (decision.changes.some(({ kind }) => kind !== 'offered')) this.#file.changed();
    const { notice } = decision;
    if (notice !== undefined && notice.kind !== 'otherServer') this.#notice(notice);
    log.debug({ mac, question: question.kind, reason: decision.reason }, 'address request');
    return { ...decision, permitted };
  }

  #decisionOn(mac: Mac): BootDecision {
    return bootDecision(this.#parts.memory(), mac, this.#parts.clock.nowMs());
  }

  /** Sends one question; its number differs from that of every other question. */
  #ask(socket: UdpSocket): void {
    const { dhcp, settings } = this.#parts;
    const nowMs = this.#nowMs();
    const packet = probePacket(settings.serverAddress, nowMs);
    this.#asked = { transactionId: packet.transactionId, atMs: nowMs };
    socket.send(encodeDhcp(packet), { address: dhcp.broadcastAddress, port: dhcp.relayPort });
  }

  /** A client names another server: asks whether it exists, but not too often. */
  #suspect(socket: UdpSocket, serverAddress: string): void {
    const sinceMs = this.#nowMs() - (this.#asked?.atMs ?? Number.NEGATIVE_INFINITY);
    if (sinceMs < suspicionPauseMs) return;
    this.#parts.log.info({ serverAddress }, 'a client names another DHCP server; it is looked for');
    this.#ask(socket);
  }

  /** Only an answer to our question counts; other packets are ignored. */
  #noteOtherServer({ packet, server, address }: OtherAnswer): void {
    const { plan, serverAddress } = this.#parts.settings;
    if (server === serverAddress || !subnetHas(plan.subnet, address)) return;
    const isAnswer = packet.transactionId === this.#asked?.transactionId;
    if (!isAnswer || macOf(packet) !== this.#ownProbe) return;
    this.#notice({ kind: 'otherServer', serverAddress: server });
  }

  #notice(notice: ServerNotice): void {
    const { clock, dhcp, log, onFault } = this.#parts;
    if (notice.kind === 'otherServer') {
      const { quietMs } = dhcp.otherServer;
      const seen = afterOtherServer(this.#quiet, notice.serverAddress, this.#nowMs(), quietMs);
      this.#quiet = seen.quiet;
      this.#parts.meter?.dhcpQuiet(this, true);
      if (!seen.isNews) return;
    }
    const { kind, ...fields } = notice;
    this.#parts.meter?.dhcpFault(kind);
    this.#faultLines.spend((suppressed) => {
      log.error({ ...fields, suppressed }, faultMessages[kind]);
    });
    try {
      onFault({ ...notice, atMs: clock.nowMs() });
    } catch (error) {
      log.error({}, 'observer of DHCP faults failed', error);
    }
  }

  /** Also says when it is over. */
  #isQuiet(): boolean {
    const quiet = isQuiet(this.#quiet, this.#nowMs());
    if (!quiet && this.#quiet.kind === 'quiet') {
      const { serverAddress } = this.#quiet;
      this.#quiet = serving;
      this.#parts.meter?.dhcpQuiet(this, false);
      this.#parts.log.info({ serverAddress }, 'no trace of the other DHCP server: serving again');
      this.#parts.onServerGone(serverAddress);
    }
    return quiet;
  }
}

/**
 * Whether the request's own bytes are all that its answer depends on. An inform depends on the
 * sender's address as well; strangers may send any number of them. A Raspberry Pi's request may be
 * its firmware's by the transaction alone.
 */
function isWhole({ question, boot, mac }: ServerRequest): boolean {
  if (question.kind === 'inform') return false;
  return question.kind !== 'selecting' || boot !== undefined || !isRaspberryPi(mac);
}

const faultMessages: Readonly<Record<ServerNotice['kind'], string>> = {
  otherServer: 'another DHCP server gives addresses here: silent until it is gone',
  declined: 'a client found its address in use by somebody else: put aside for a time',
  noAddressLeft: 'no address is left for a client: its range is too small',
};
