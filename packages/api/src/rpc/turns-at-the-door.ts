/**
 * Who may connect, and whose handshake is next, before any of it costs anything. Counts only.
 *
 * Invariants:
 * 1. No more connections are held than allowed, overall and from one address.
 * 2. No more handshakes have their turn at once than allowed, overall and with one address; turns
 *    go round the addresses that wait, so that one with many does not keep out one with few.
 * 3. What leaves, at whatever stage, is counted nowhere afterwards.
 */
import type { RpcLimits } from './limits.ts';

export type DoorLimits = Pick<
  RpcLimits,
  'connectionsMax' | 'connectionsPerAddressMax' | 'handshakesMax' | 'handshakesPerAddressMax'
>;

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
  /** Gives back the turn of its handshake, done or not. */
  turnOver(): void;
  /** It is gone. */
  left(): void;
}

interface Address {
  connections: number;
  handshakes: number;
  /** Who waits, the first comer first; removed when it leaves. */
  readonly waiting: Set<() => void>;
}

export class TurnsAtTheDoor {
  readonly #limits: DoorLimits;
  readonly #addresses = new Map<string, Address>();
  /** Addresses with someone waiting, the one whose turn was longest ago first. */
  readonly #queue = new Set<Address>();
  #connections = 0;
  #handshakes = 0;
  #waiting = 0;
  #refused = 0;

  constructor(limits: DoorLimits) {
    this.#limits = limits;
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
    const address = known ?? { connections: 0, handshakes: 0, waiting: new Set() };
    this.#addresses.set(from, address);
    this.#connections += 1;
    address.connections += 1;
    let stage: 'waiting' | 'turn' | 'in' | 'left' = 'waiting';
    const start = () => {
      stage = 'turn';
      begin();
    };
    const turnOver = () => {
      if (stage !== 'turn') return;
      stage = 'in';
      this.#handshakes -= 1;
      address.handshakes -= 1;
      this.#next();
    };
    this.#waiting += 1;
    address.waiting.add(start);
    this.#queue.add(address);
    this.#next();
    return {
      turnOver,
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
    const { handshakesMax, handshakesPerAddressMax } = this.#limits;
    for (const address of this.#queue) {
      if (this.#handshakes >= handshakesMax) return;
      if (address.handshakes >= handshakesPerAddressMax) continue;
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

  #stopWaiting(address: Address, start: () => void): void {
    if (!address.waiting.delete(start)) return;
    this.#waiting -= 1;
    if (address.waiting.size === 0) this.#queue.delete(address);
  }
}
