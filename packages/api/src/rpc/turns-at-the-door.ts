/**
 * Who may connect, and whose handshake is next, before any of it costs anything. Counts only.
 *
 * Invariants:
 * 1. No more connections are held than allowed, overall and from one network; of the room overall
 *    a part is only for networks of which somebody has shown lately who it is.
 * 2. No more handshakes have their turn at once than allowed, overall and with one network, and no
 *    more begin in a second: what has a session has the time between them. Turns go round the
 *    networks that wait, so that one with many does not keep out one with few.
 * 3. Networks of which somebody is known come first. Those whose handshakes have failed come last,
 *    have few turns among them, and hold each for longer: so what does not lead anywhere costs
 *    little, whoever does it.
 * 4. Of those that are in and have not shown who they are, no more stay than allowed: the one that
 *    came first of the network with most of them goes.
 * 5. What leaves, at whatever stage, is counted nowhere afterwards.
 */
import { Bucket, type Clock } from '@rackwright/platform';
import type { RpcLimits } from './limits.ts';
import { type Standing, Standings } from './standing.ts';

export type DoorLimits = Pick<
  RpcLimits,
  | 'connectionsMax'
  | 'connectionsPerAddressMax'
  | 'connectionsForKnownMax'
  | 'strangersMax'
  | 'knownForMs'
  | 'handshakesPerSecond'
  | 'handshakesBurst'
  | 'handshakesMax'
  | 'handshakesPerAddressMax'
  | 'suspectHandshakesMax'
  | 'suspectForMs'
>;

/** What the door holds, for who looks at it. */
export interface DoorCounts {
  readonly connections: number;
  /** Connections that wait for the turn of their handshake. */
  readonly waiting: number;
  /** Handshakes that have their turn. */
  readonly handshakes: number;
  /** Connections that are in and have not shown who they are. */
  readonly strangers: number;
  /** Connections refused so far. */
  readonly refused: number;
  /** Connections of strangers ended so far for want of room. */
  readonly strangersEnded: number;
}

/** What the door does with a connection. */
export interface Visit {
  /** Its handshake has its turn. */
  readonly begin: () => void;
  /** It has to go, for want of room. */
  readonly end: () => void;
}

/** One connection at the door. */
export interface Visitor {
  /** It has said what a handshake begins with: it waits for its turn from now on. */
  ready(): void;
  /** Gives back the turn of its handshake, which is over or takes too long. */
  turnOver(): void;
  /** Its handshake has led nowhere; it keeps its turn, as a suspect, until `turnOver`. */
  failed(): void;
  /** Its handshake is over, and it is in. */
  entered(): void;
  /** It has shown who it is. */
  vouched(): void;
  /** It is gone. */
  left(): void;
}

interface Network {
  readonly name: string;
  connections: number;
  handshakes: number;
  /** Who waits, the first comer first; removed when it leaves. */
  readonly waiting: Set<Place>;
  /** Who is in and has not shown who it is, the first comer first. */
  readonly strangers: Set<Place>;
}

/** Whose turns come first. */
const inOrder: readonly Standing[] = ['known', 'stranger', 'suspect'];

export class TurnsAtTheDoor {
  readonly #limits: DoorLimits;
  readonly #clock: Pick<Clock, 'nowMs' | 'after'>;
  readonly #standings: Standings;
  readonly #beginnings: Bucket;
  readonly #networks = new Map<string, Network>();
  /** Networks with someone waiting, the one whose turn was longest ago first. */
  readonly #queue = new Set<Network>();
  #isArmed = false;
  #connections = 0;
  #handshakes = 0;
  #suspectHandshakes = 0;
  #waiting = 0;
  #strangers = 0;
  #refused = 0;
  #strangersEnded = 0;

  constructor(limits: DoorLimits, clock: Pick<Clock, 'nowMs' | 'after'>) {
    this.#limits = limits;
    this.#clock = clock;
    this.#standings = new Standings(limits, () => clock.nowMs());
    const rate = { perSecond: limits.handshakesPerSecond, most: limits.handshakesBurst };
    this.#beginnings = new Bucket(rate, clock.nowMs());
  }

  get counts(): DoorCounts {
    return {
      connections: this.#connections,
      waiting: this.#waiting,
      handshakes: this.#handshakes,
      strangers: this.#strangers,
      refused: this.#refused,
      strangersEnded: this.#strangersEnded,
    };
  }

  /** Undefined: there is no room. */
  arrive(from: string, visit: Visit): Visitor | undefined {
    const known = this.#networks.get(from);
    if (!this.#hasRoom(from, known?.connections ?? 0)) {
      this.#refused += 1;
      return undefined;
    }
    const network = known ?? {
      ...{ name: from, connections: 0, handshakes: 0 },
      ...{ waiting: new Set<Place>(), strangers: new Set<Place>() },
    };
    this.#networks.set(from, network);
    this.#connections += 1;
    network.connections += 1;
    const place = new Place(network, visit);
    return {
      ready: () => this.#ready(place),
      turnOver: () => this.#turnOver(place),
      failed: () => this.#failed(place),
      entered: () => this.#entered(place),
      vouched: () => this.#vouched(place),
      left: () => this.#left(place),
    };
  }

  #hasRoom(from: string, own: number): boolean {
    const { connectionsMax, connectionsPerAddressMax, connectionsForKnownMax } = this.#limits;
    if (own >= connectionsPerAddressMax) return false;
    const isKnown = this.#standings.of(from) === 'known';
    const kept = isKnown ? 0 : Math.min(connectionsForKnownMax, Math.floor(connectionsMax / 4));
    return this.#connections < connectionsMax - kept;
  }

  #ready(place: Place): void {
    if (place.stage !== 'quiet') return;
    place.stage = 'waiting';
    this.#waiting += 1;
    place.network.waiting.add(place);
    this.#queue.add(place.network);
    this.#next();
  }

  #turnOver(place: Place): void {
    if (place.stage !== 'turn' && place.stage !== 'failed') return;
    if (place.stage === 'turn') this.#handshakes -= 1;
    place.stage = 'after';
    place.network.handshakes -= 1;
    if (place.isSuspect) this.#suspectHandshakes -= 1;
    this.#next();
  }

  #failed(place: Place): void {
    this.#standings.suspect(place.network.name);
    if (place.stage !== 'turn') return;
    // From here on it takes a turn of the suspects, and none of the others.
    place.stage = 'failed';
    this.#handshakes -= 1;
    if (!place.isSuspect) this.#suspectHandshakes += 1;
    place.isSuspect = true;
    this.#next();
  }

  #entered(place: Place): void {
    this.#turnOver(place);
    if (place.stage !== 'after' || place.network.strangers.has(place)) return;
    place.network.strangers.add(place);
    this.#strangers += 1;
    if (this.#strangers <= this.#limits.strangersMax) return;
    const oldest = this.#oldestOfMost();
    if (oldest === undefined) return;
    this.#strangersEnded += 1;
    this.#noStranger(oldest);
    oldest.visit.end();
  }

  #oldestOfMost(): Place | undefined {
    let most: Network | undefined;
    for (const each of this.#networks.values()) {
      if (most === undefined || each.strangers.size > most.strangers.size) most = each;
    }
    const [oldest] = most?.strangers ?? [];
    return oldest;
  }

  #vouched(place: Place): void {
    this.#noStranger(place);
    this.#standings.vouch(place.network.name);
  }

  #noStranger(place: Place): void {
    if (place.network.strangers.delete(place)) this.#strangers -= 1;
  }

  #left(place: Place): void {
    if (place.stage === 'left') return;
    if (place.stage === 'waiting') this.#stopWaiting(place);
    this.#turnOver(place);
    this.#noStranger(place);
    place.stage = 'left';
    const { network } = place;
    this.#connections -= 1;
    network.connections -= 1;
    if (network.connections === 0) this.#networks.delete(network.name);
  }

  #next(): void {
    for (const standing of inOrder) {
      for (const network of this.#queue) {
        if (this.#waiting === 0) return;
        if (!this.#mayStart(network, standing)) continue;
        if (!this.#mayBegin()) return;
        const [place] = network.waiting;
        this.#queue.delete(network);
        if (place === undefined) continue;
        this.#stopWaiting(place);
        // Behind the others: this loop comes to it again while there is room.
        if (network.waiting.size > 0) this.#queue.add(network);
        this.#begin(place, standing === 'suspect');
      }
    }
  }

  #begin(place: Place, isSuspect: boolean): void {
    this.#handshakes += 1;
    place.network.handshakes += 1;
    place.stage = 'turn';
    place.isSuspect = isSuspect;
    if (isSuspect) this.#suspectHandshakes += 1;
    place.visit.begin();
  }

  #mayStart({ name, handshakes }: Network, standing: Standing): boolean {
    const { handshakesMax, handshakesPerAddressMax, suspectHandshakesMax } = this.#limits;
    if (this.#handshakes >= handshakesMax || handshakes >= handshakesPerAddressMax) return false;
    if (this.#standings.of(name) !== standing) return false;
    return standing !== 'suspect' || this.#suspectHandshakes < suspectHandshakesMax;
  }

  /** Whether another handshake may begin now; else they go on by themselves when one may. */
  #mayBegin(): boolean {
    if (this.#isArmed) return false;
    const waitMs = this.#beginnings.tryTake(1, this.#clock.nowMs());
    if (waitMs === 0) return true;
    this.#isArmed = true;
    this.#clock.after(waitMs, () => {
      this.#isArmed = false;
      this.#next();
    });
    return false;
  }

  #stopWaiting(place: Place): void {
    const { waiting } = place.network;
    if (!waiting.delete(place)) return;
    this.#waiting -= 1;
    if (waiting.size === 0) this.#queue.delete(place.network);
  }
}

/** Of a connection. */
class Place {
  readonly network: Network;
  readonly visit: Visit;
  stage: 'quiet' | 'waiting' | 'turn' | 'failed' | 'after' | 'left' = 'quiet';
  isSuspect = false;

  constructor(network: Network, visit: Visit) {
    this.network = network;
    this.visit = visit;
  }
}
