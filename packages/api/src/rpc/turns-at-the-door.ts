/**
 * Who may connect, and whose handshake is next, before any of it costs anything. Counts only.
 *
 * Invariants:
 * 1. No more connections are held than allowed, overall and from one address.
 * 2. No more handshakes have their turn at once than allowed, overall and with one address; turns
 *    go round the addresses that wait, so that one with many does not keep out one with few.
 * 3. Addresses whose handshakes have failed come after those whose have not, have few turns among
 *    them, and hold each for longer: so what does not lead anywhere costs little, whoever does it.
 * 4. What leaves, at whatever stage, is counted nowhere afterwards.
 */
import type { RpcLimits } from './limits.ts';

export type DoorLimits = Pick<
  RpcLimits,
  | 'connectionsMax'
  | 'connectionsPerAddressMax'
  | 'handshakesMax'
  | 'handshakesPerAddressMax'
  | 'suspectHandshakesMax'
  | 'suspectForMs'
>;

/** Addresses whose failures are remembered; of more the oldest is forgotten. */
const suspectsMax = 4_096;

/** What the door holds, for who looks at it. */
export interface DoorCounts {
  readonly connections: number;
  /** Connections that wait for the turn of their handshake. */
  readonly waiting: number;
  /** Handshakes that have their turn. */
  readonly handshakes: number;
  /** Connections refused so far. */
  readonly refused: number;
}

/** One connection at the door. */
export interface Visitor {
  /** Gives back the turn of its handshake, which is over or takes too long. */
  turnOver(): void;
  /** Its handshake has led nowhere; it keeps its turn, as a suspect, until `turnOver`. */
  failed(): void;
  /** It is gone. */
  left(): void;
}

interface Address {
  readonly name: string;
  connections: number;
  handshakes: number;
  /** Who waits, the first comer first; removed when it leaves. */
  readonly waiting: Set<() => void>;
}

export class TurnsAtTheDoor {
  readonly #limits: DoorLimits;
  readonly #nowMs: () => number;
  /** Until when addresses are suspect, the oldest first. */
  readonly #suspects = new Map<string, number>();
  #suspectHandshakes = 0;
  readonly #addresses = new Map<string, Address>();
  /** Addresses with someone waiting, the one whose turn was longest ago first. */
  readonly #queue = new Set<Address>();
  #connections = 0;
  #handshakes = 0;
  #waiting = 0;
  #refused = 0;

  constructor(limits: DoorLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  get counts(): DoorCounts {
    return {
      connections: this.#connections,
      waiting: this.#waiting,
      handshakes: this.#handshakes,
      refused: this.#refused,
    };
  }

  /** `begin` is called once its handshake has its turn. Undefined: there is no room. */
  arrive(from: string, begin: () => void): Visitor | undefined {
    const { connectionsMax, connectionsPerAddressMax } = this.#limits;
    const known = this.#addresses.get(from);
    if (
      this.#connections >= connectionsMax ||
      (known?.connections ?? 0) >= connectionsPerAddressMax
    ) {
      this.#refused += 1;
      return undefined;
    }
    const address = known ?? { name: from, connections: 0, handshakes: 0, waiting: new Set() };
    this.#addresses.set(from, address);
    this.#connections += 1;
    address.connections += 1;
    let stage: 'waiting' | 'turn' | 'failed' | 'in' | 'left' = 'waiting';
    let isSuspect = false;
    const start = () => {
      stage = 'turn';
      isSuspect = this.#isSuspect(from);
      if (isSuspect) this.#suspectHandshakes += 1;
      begin();
    };
    const turnOver = () => {
      if (stage !== 'turn' && stage !== 'failed') return;
      if (stage === 'turn') this.#handshakes -= 1;
      stage = 'in';
      address.handshakes -= 1;
      if (isSuspect) this.#suspectHandshakes -= 1;
      this.#next();
    };
    const failed = () => {
      this.#suspect(from);
      if (stage !== 'turn') return;
      // From here on it takes a turn of the suspects, and none of the others.
      stage = 'failed';
      this.#handshakes -= 1;
      if (!isSuspect) this.#suspectHandshakes += 1;
      isSuspect = true;
      this.#next();
    };
    this.#waiting += 1;
    address.waiting.add(start);
    this.#queue.add(address);
    this.#next();
    return {
      turnOver,
      failed,
      left: () => {
        if (stage === 'left') return;
        if (stage === 'waiting') this.#stopWaiting(address, start);
        turnOver();
        stage = 'left';
        this.#connections -= 1;
        address.connections -= 1;
        if (address.connections === 0) this.#addresses.delete(from);
      },
    };
  }

  #next(): void {
    for (const suspect of [false, true]) {
      for (const address of this.#queue) {
        if (!this.#mayStart(address, suspect)) continue;
        const [start] = address.waiting;
        this.#queue.delete(address);
        if (start === undefined) continue;
        this.#stopWaiting(address, start);
        // Behind the others: this loop comes to it again while there is room.
        if (address.waiting.size > 0) this.#queue.add(address);
        this.#handshakes += 1;
        address.handshakes += 1;
        start();
      }
    }
  }

  #mayStart({ name, handshakes }: Address, suspect: boolean): boolean {
    const { handshakesMax, handshakesPerAddressMax, suspectHandshakesMax } = this.#limits;
    if (this.#handshakes >= handshakesMax || handshakes >= handshakesPerAddressMax) return false;
    if (this.#isSuspect(name) !== suspect) return false;
    return !suspect || this.#suspectHandshakes < suspectHandshakesMax;
  }

  #suspect(from: string): void {
    this.#suspects.delete(from);
    this.#suspects.set(from, this.#nowMs() + this.#limits.suspectForMs);
    const [oldest] = this.#suspects.keys();
    if (this.#suspects.size > suspectsMax && oldest !== undefined) this.#suspects.delete(oldest);
  }

  #isSuspect(from: string): boolean {
    const untilMs = this.#suspects.get(from);
    if (untilMs === undefined) return false;
    if (this.#nowMs() < untilMs) return true;
    this.#suspects.delete(from);
    return false;
  }

  #stopWaiting(address: Address, start: () => void): void {
    if (!address.waiting.delete(start)) return;
    this.#waiting -= 1;
    if (address.waiting.size === 0) this.#queue.delete(address);
  }
}
