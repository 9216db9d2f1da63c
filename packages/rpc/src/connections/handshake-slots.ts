/**
 * Which connections are accepted, and whose handshake is next, before any of it costs anything.
 * Counts only.
 *
 * Invariants:
 * 1. No more connections are held than allowed, overall and from one network. A part of the overall
 *    room is only for known networks: those with a recently authenticated peer. When there is no
 *    room, the oldest connection that has not begun goes, of the network with most of them.
 * 2. No more handshakes have a slot at once than allowed, overall and with one network, and no more
 *    begin in a second: sessions get the time between them. The waiting networks get slots in
 *    rotation. So a network with many connections does not keep out one with few, and no network
 *    gets slots without limit.
 * 3. Known networks, strangers, and suspects (networks with a recent failure) have shares of the
 *    slots, in this order: no kind shuts another one out. Strangers and suspects never hold all
 *    slots once a network is known, and they slow down while their handshakes fail.
 * 4. Of the connections that are in and have not authenticated, no more stay than allowed: the
 *    oldest one of the network with most of them goes.
 * 5. A connection that has left, at any stage, is counted nowhere afterwards.
 */
import { Bucket, Buckets, type Clock } from '@rackwright/platform';
import type { RpcLimits } from '../wire/limits.ts';
import { MembersByNetwork } from './crowd.ts';
import { type Reputation, Reputations } from './reputation.ts';
import { SlotShares } from './slot-shares.ts';
import { StrangersPace } from './strangers-pace.ts';

export type ConnectionLimits = Pick<
  RpcLimits,
  | 'connectionsMax'
  | 'connectionsPerAddressMax'
  | 'connectionsForKnownMax'
  | 'strangersMax'
  | 'knownForMs'
  | 'handshakesPerSecond'
  | 'handshakesBurst'
  | 'handshakesPerAddressPerSecond'
  | 'handshakesPerAddressBurst'
  | 'strangersPerSecondMin'
  | 'handshakesMax'
  | 'handshakesPerAddressMax'
  | 'suspectHandshakesMax'
  | 'suspectForMs'
>;

/** The counts of a listener, for its observers. */
export interface ListenerCounts {
  readonly connections: number;
  /** Connections that wait for a handshake slot. */
  readonly waiting: number;
  /** Handshakes that have a slot. */
  readonly handshakes: number;
  /** Connections that are in and have not authenticated. */
  readonly strangers: number;
  /** Connections refused so far, and those that were ended before they began to make room. */
  readonly refused: number;
  /** Connections of strangers that were ended so far because there was no room. */
  readonly strangersEnded: number;
}

/** The listener's commands to a connection. */
export interface ConnectionCommands {
  /** Its handshake has a slot. */
  readonly begin: () => void;
  /** It has to go, because there is no room. */
  readonly end: () => void;
}

/** One connection at the listener. */
export interface PendingConnection {
  /** It has sent the beginning of a handshake: it waits for a slot from now on. */
  ready(): void;
  /** Gives back the slot of its handshake, which is over or takes too long. */
  slotOver(): void;
  /** Its handshake has failed; its network has one slot less until `left`. */
  failed(): void;
  /** Its handshake has succeeded, and it is admitted. */
  entered(): void;
  /** Its peer has authenticated. */
  vouched(): void;
  /** It is gone. */
  left(): void;
}

interface Network {
  readonly name: string;
  connections: number;
  handshakes: number;
  /** Connections that have authenticated. */
  vouched: number;
  /** The waiting connections, the oldest first; removed when they leave. */
  readonly waiting: Set<Handshake>;
  /** The line in which it waits for a slot; undefined: it may have none now. */
  line: Set<Network> | undefined;
  /** It has had so many slots lately that it has to wait. */
  isParked: boolean;
}

/** Networks that are examined, at most, for a connection that makes room. */
const triesMax = 16;
/** Networks whose rates are remembered at once. */
const networksMax = 8_192;

export class HandshakeSlots {
  readonly #limits: ConnectionLimits;
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly #reputations: Reputations;
  readonly #beginnings: Bucket;
  readonly #rates: Buckets;
  readonly #pace: StrangersPace<Handshake>;
  readonly #shares = new SlotShares();
  readonly #networks = new Map<string, Network>();
  /** Networks that may have a slot, by their reputation: the one served longest ago first. */
  readonly #lines: Readonly<Record<Reputation, Set<Network>>> = {
    known: new Set(),
    stranger: new Set(),
    suspect: new Set(),
  };
  /** Connections that have not begun. */
  readonly #idle = new MembersByNetwork<Handshake>();
  /** Connections that are in and have not authenticated. */
  readonly #strangers = new MembersByNetwork<Handshake>();
  /** When all, or strangers, may go on. */
  #isArmed = false;
  #isPaced = false;
  #connections = 0;
  #handshakes = 0;
  /** Those of them that are not of known networks. */
  #unknownHandshakes = 0;
  #suspectHandshakes = 0;
  #waiting = 0;
  #vouchedNow = 0;
  #refused = 0;
  #strangersEnded = 0;

  constructor(limits: ConnectionLimits, clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#reputations = new Reputations(limits, () => clock.nowMs());
    const { handshakesPerSecond: perSecond, handshakesBurst: burst } = limits;
    this.#beginnings = new Bucket({ perSecond, most: burst }, clock.nowMs());
    const { handshakesPerAddressPerSecond, handshakesPerAddressBurst } = limits;
    const own = { perSecond: handshakesPerAddressPerSecond, most: handshakesPerAddressBurst };
    this.#rates = new Buckets(own, networksMax);
    const perSecondMin = Math.min(limits.strangersPerSecondMin, perSecond);
    const pace = { perSecondMax: perSecond, perSecondMin, burst };
    this.#pace = new StrangersPace(pace, clock.nowMs(), ({ network }) =>
      this.#reputations.suspect(network.name),
    );
  }

  get counts(): ListenerCounts {
    return {
      connections: this.#connections,
      waiting: this.#waiting,
      handshakes: this.#handshakes,
      strangers: this.#strangers.size,
      refused: this.#refused,
      strangersEnded: this.#strangersEnded,
    };
  }

  /** Undefined: there is no room. */
  arrive(from: string, commands: ConnectionCommands): PendingConnection | undefined {
    if (!this.#hasRoom(from) && !this.#makeRoom(from)) {
      this.#refused += 1;
      return undefined;
    }
    const network = this.#networks.get(from) ?? {
      ...{ name: from, connections: 0, handshakes: 0, vouched: 0 },
      ...{ waiting: new Set<Handshake>(), line: undefined, isParked: false },
    };
    this.#networks.set(from, network);
    this.#connections += 1;
    network.connections += 1;
    const handshake = new Handshake(network, commands);
    this.#idle.add(from, handshake);
    return {
      ready: () => this.#ready(handshake),
      slotOver: () => this.#slotOver(handshake),
      failed: () => this.#failed(handshake),
      entered: () => this.#entered(handshake),
      vouched: () => this.#vouched(handshake),
      left: () => this.#left(handshake),
    };
  }

  #ownRoom(from: string): number {
    const { connectionsPerAddressMax } = this.#limits;
    return connectionsPerAddressMax - (this.#networks.get(from)?.connections ?? 0);
  }

  #hasRoom(from: string): boolean {
    const { connectionsMax, connectionsForKnownMax } = this.#limits;
    const isKnown = this.#reputationOf(from) === 'known';
    const kept = isKnown ? 0 : Math.min(connectionsForKnownMax, Math.floor(connectionsMax / 4));
    return this.#ownRoom(from) > 0 && this.#connections < connectionsMax - kept;
  }

  /** Invariant 1: no connection of a known network goes, and none goes without a benefit. */
  #makeRoom(from: string): boolean {
    if (this.#ownRoom(from) <= 0) return false;
    let tries = triesMax;
    for (const first of this.#idle.oldestOfLargestNetwork()) {
      if (tries === 0) return false;
      tries -= 1;
      if (this.#reputationOf(first.network.name) === 'known') continue;
      this.#refused += 1;
      this.#left(first);
      first.commands.end();
      return true;
    }
    return false;
  }

  #reputationOf(name: string): Reputation {
    const vouched = this.#networks.get(name)?.vouched ?? 0;
    return vouched > 0 ? 'known' : this.#reputations.of(name);
  }

  #ready(handshake: Handshake): void {
    if (handshake.stage !== 'quiet') return;
    handshake.stage = 'waiting';
    this.#waiting += 1;
    handshake.network.waiting.add(handshake);
    this.#line(handshake.network);
    this.#next();
  }

  #slotOver(handshake: Handshake): void {
    if (handshake.stage !== 'slot' && handshake.stage !== 'failed') return;
    const isSuspect = handshake.slotOf === 'suspect';
    if (handshake.stage === 'slot') this.#giveBack(handshake);
    handshake.stage = 'after';
    handshake.network.handshakes -= 1;
    if (isSuspect) this.#suspectHandshakes -= 1;
    this.#line(handshake.network);
    this.#next();
  }

  #giveBack(handshake: Handshake): void {
    this.#handshakes -= 1;
    if (handshake.slotOf !== 'known') this.#unknownHandshakes -= 1;
  }

  #failed(handshake: Handshake): void {
    this.#pace.countFailure(handshake, this.#clock.nowMs());
    this.#reputations.suspect(handshake.network.name);
    this.#line(handshake.network);
    if (handshake.stage !== 'slot') return;
    // Other networks may use its slot from here on; its own network, and suspects if it is one, may
    // not.
    this.#giveBack(handshake);
    handshake.stage = 'failed';
    this.#next();
  }

  #entered(handshake: Handshake): void {
    this.#slotOver(handshake);
    if (handshake.stage !== 'after' || handshake.isVouched) return;
    this.#strangers.add(handshake.network.name, handshake);
    if (this.#strangers.size <= this.#limits.strangersMax) return;
    const [oldest] = this.#strangers.oldestOfLargestNetwork();
    if (oldest === undefined) return;
    this.#strangersEnded += 1;
    this.#strangers.delete(oldest.network.name, oldest);
    this.#pace.countFailure(oldest, this.#clock.nowMs());
    oldest.commands.end();
  }

  #vouched(handshake: Handshake): void {
    const { network } = handshake;
    if (handshake.isVouched || handshake.stage === 'left') return;
    handshake.isVouched = true;
    network.vouched += 1;
    this.#vouchedNow += 1;
    this.#strangers.delete(network.name, handshake);
    if (handshake.slotOf === 'stranger') this.#pace.countSuccess(handshake, this.#clock.nowMs());
    this.#line(network);
    this.#next();
  }

  #left(handshake: Handshake): void {
    const { network, stage } = handshake;
    if (stage === 'left') return;
    if (stage === 'waiting') this.#stopWaiting(handshake);
    this.#idle.delete(network.name, handshake);
    this.#pace.countFailure(handshake, this.#clock.nowMs());
    this.#slotOver(handshake);
    this.#strangers.delete(network.name, handshake);
    handshake.stage = 'left';
    if (handshake.isVouched) {
      network.vouched -= 1;
      this.#vouchedNow -= 1;
      this.#reputations.vouch(network.name);
    }
    this.#connections -= 1;
    network.connections -= 1;
    if (network.connections === 0) this.#networks.delete(network.name);
  }

  /** Puts it where it has to wait; where it is already it stays. */
  #line(network: Network): void {
    const { handshakesPerAddressMax } = this.#limits;
    const mayHave =
      network.waiting.size > 0 && !network.isParked && network.handshakes < handshakesPerAddressMax;
    const line = mayHave ? this.#lines[this.#reputationOf(network.name)] : undefined;
    if (line === network.line) return;
    network.line?.delete(network);
    line?.add(network);
    network.line = line;
  }

  /** Costs the same however many wait. */
  #next(): void {
    while (!this.#isArmed && this.#handshakes < this.#limits.handshakesMax) {
      const reputation = this.#shares.next(this.#whoMayBegin());
      if (reputation === undefined) return;
      const [network] = this.#lines[reputation];
      if (network === undefined) return;
      // Its reputation may have ended meanwhile.
      this.#line(network);
      if (network.line !== this.#lines[reputation] || this.#park(network)) continue;
      if (!this.#mayBegin()) return;
      this.#shares.take(reputation);
      this.#begin(network, reputation);
    }
  }

  #whoMayBegin(): Reputation[] {
    const { known, stranger, suspect } = this.#lines;
    const reputations: Reputation[] = known.size > 0 ? ['known'] : [];
    if (stranger.size === 0 && suspect.size === 0) return reputations;
    if (this.#unknownHandshakes >= this.#unknownMax() || !this.#isTheirTime()) return reputations;
    if (stranger.size > 0) reputations.push('stranger');
    const isFull = this.#suspectHandshakes >= this.#limits.suspectHandshakesMax;
    if (suspect.size > 0 && !isFull) reputations.push('suspect');
    return reputations;
  }

  /** A quarter is left for known networks, once there is any. */
  #unknownMax(): number {
    const { handshakesMax } = this.#limits;
    if (this.#vouchedNow === 0 && !this.#reputations.hasKnown) return handshakesMax;
    return Math.max(1, handshakesMax - Math.ceil(handshakesMax / 4));
  }

  /** Whether strangers may go on; else they do by themselves when they may. */
  #isTheirTime(): boolean {
    if (this.#isPaced) return false;
    const waitMs = this.#pace.waitMs(this.#clock.nowMs());
    if (waitMs === 0) return true;
    this.#isPaced = true;
    this.#clock.after(waitMs, () => {
      this.#isPaced = false;
      this.#next();
    });
    return false;
  }

  #begin(network: Network, reputation: Reputation): void {
    const [handshake] = network.waiting;
    if (handshake === undefined) return;
    const nowMs = this.#clock.nowMs();
    this.#stopWaiting(handshake);
    this.#idle.delete(network.name, handshake);
    this.#rates.of(network.name, nowMs).take(1, nowMs);
    this.#handshakes += 1;
    network.handshakes += 1;
    handshake.stage = 'slot';
    handshake.slotOf = reputation;
    if (reputation !== 'known') {
      this.#unknownHandshakes += 1;
      this.#pace.countStart(handshake, reputation === 'stranger', nowMs);
    }
    if (reputation === 'suspect') this.#suspectHandshakes += 1;
    // The network goes to the end of its line.
    network.line?.delete(network);
    network.line = undefined;
    this.#line(network);
    handshake.commands.begin();
  }

  /** True: it has had so many slots lately that it waits. */
  #park(network: Network): boolean {
    const nowMs = this.#clock.nowMs();
    const waitMs = this.#rates.of(network.name, nowMs).take(0, nowMs);
    if (waitMs === 0) return false;
    network.isParked = true;
    this.#line(network);
    this.#clock.after(waitMs, () => {
      network.isParked = false;
      this.#line(network);
      this.#next();
    });
    return true;
  }

  /** Whether another handshake may begin now; else they go on by themselves when one may. */
  #mayBegin(): boolean {
    const waitMs = this.#beginnings.tryTake(1, this.#clock.nowMs());
    if (waitMs === 0) return true;
    this.#isArmed = true;
    this.#clock.after(waitMs, () => {
      this.#isArmed = false;
      this.#next();
    });
    return false;
  }

  #stopWaiting(handshake: Handshake): void {
    if (!handshake.network.waiting.delete(handshake)) return;
    this.#waiting -= 1;
    this.#line(handshake.network);
  }
}

/** Of a connection. */
class Handshake {
  readonly network: Network;
  readonly commands: ConnectionCommands;
  stage: 'quiet' | 'waiting' | 'slot' | 'failed' | 'after' | 'left' = 'quiet';
  /** The reputation under which it got its slot. */
  slotOf: Reputation | undefined;
  isVouched = false;

  constructor(network: Network, commands: ConnectionCommands) {
    this.network = network;
    this.commands = commands;
  }
}
