/** Large crowds at the listener, with the default limits and a simulated clock. */
import { describe, expect, test } from 'vitest';
import { defaultRpcLimits } from '../wire/limits.ts';
import {
  type ConnectionLimits,
  HandshakeSlots,
  type PendingConnection,
} from './handshake-slots.ts';

/** How long a handshake of an honest client takes. */
const handshakeMs = 10;

class World {
  nowMs = 0;
  readonly #due: { atMs: number; act: () => void }[] = [];
  readonly slots: HandshakeSlots;
  /** When each began, by its network. */
  readonly begun: { from: string; atMs: number }[] = [];

  constructor(more: Partial<ConnectionLimits> = {}) {
    const clock = {
      nowMs: () => this.nowMs,
      after: (ms: number, act: () => void) => this.after(ms, act),
    };
    this.slots = new HandshakeSlots({ ...defaultRpcLimits, ...more }, clock);
  }

  after(ms: number, act: () => void): () => void {
    const due = { atMs: this.nowMs + ms, act };
    let at = this.#due.length;
    while (at > 0 && (this.#due[at - 1]?.atMs ?? 0) > due.atMs) at -= 1;
    this.#due.splice(at, 0, due);
    return () => {
      due.act = () => undefined;
    };
  }

  runUntil(untilMs: number): void {
    while ((this.#due[0]?.atMs ?? Number.POSITIVE_INFINITY) <= untilMs) {
      const due = this.#due.shift();
      this.nowMs = due?.atMs ?? this.nowMs;
      due?.act();
    }
    this.nowMs = untilMs;
  }

  /** Somebody dials, and is cut when it has waited too long. */
  dial(
    from: string,
    begins: (connection: PendingConnection) => void,
    gone: () => void = () => undefined,
  ) {
    const leave = () => {
      stop();
      connection?.left();
      gone();
    };
    const stop = this.after(defaultRpcLimits.handshakeWaitMs, leave);
    const begin = () => {
      stop();
      this.begun.push({ from, atMs: this.nowMs });
      this.after(0, () => connection && begins(connection));
    };
    const connection = this.slots.arrive(from, { begin, end: stop });
    if (connection === undefined) stop();
    connection?.ready();
    return connection;
  }

  /** An agent: it comes, shows who it is, and stays. Says where it is, once it is in. */
  agent(from: string, isIn: (connection: PendingConnection) => void = () => undefined): void {
    const again = () => this.agent(from, isIn);
    const begins = (connection: PendingConnection) =>
      this.after(handshakeMs, () => {
        connection.entered();
        connection.vouched();
        isIn(connection);
      });
    this.dial(from, begins, () => this.after(1_000, again));
  }

  /** Each of many addresses fails, and tries again. */
  flood(addresses: number, perSecond: number): void {
    let next = 0;
    const one = () => {
      next += 1;
      const begins = (connection: PendingConnection) => {
        this.after(handshakeMs, () => connection.failed());
        this.after(handshakeMs + defaultRpcLimits.failedSlotMs, () => connection.left());
      };
      this.dial(`flood ${next % addresses}`, begins);
      this.after(1_000 / perSecond, one);
    };
    one();
  }

  /** Comes again and again, without an end. */
  loop(from: string, how: 'good' | 'failing'): void {
    const again = () => {
      this.loop(from, how);
    };
    const begins = (connection: PendingConnection) =>
      this.after(handshakeMs, () => {
        if (how === 'good') connection.entered();
        if (how === 'good') connection.vouched();
        else connection.failed();
        this.after(how === 'good' ? 0 : defaultRpcLimits.failedSlotMs, () => connection.left());
        this.after(1, again);
      });
    if (this.dial(from, begins, again) === undefined) this.after(100, again);
  }

  /** It says what a handshake begins with, and nothing more. */
  stall(from: string): void {
    const begins = (connection: PendingConnection) => {
      this.after(defaultRpcLimits.handshakeSlotMs, () => connection.slotOver());
      this.after(defaultRpcLimits.handshakeMs, () => {
        connection.failed();
        connection.left();
        this.stall(from);
      });
    };
    const gone = () => this.stall(from);
    if (this.dial(from, begins, gone) === undefined) this.after(100, gone);
  }

  count(prefix: string, fromMs = 0): number {
    return this.begun.filter((each) => each.from.startsWith(prefix) && each.atMs >= fromMs).length;
  }
}

const times = <T>(count: number, act: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => act(index));

describe('a network that never stops', () => {
  test('keeps nobody out when it is known: strangers have their share of the slots', () => {
    const world = new World();
    times(8, () => world.loop('busy', 'good'));
    world.runUntil(1_000);
    times(500, (index) => world.agent(`agent ${index}`));
    world.runUntil(21_000);
    expect(world.count('agent')).toBe(500);
    expect(world.count('busy', 1_000)).toBeGreaterThan(500);
  });

  test('has so many handshakes in a second and no more, even when nobody else comes', () => {
    const world = new World({ handshakesPerAddressBurst: 100 });
    times(8, () => world.loop('busy', 'good'));
    world.runUntil(20_000);
    expect(world.count('busy', 10_000)).toBeLessThanOrEqual(510);
    expect(world.count('busy', 10_000)).toBeGreaterThan(450);
  });

  test('leaves something to suspects, too', () => {
    const world = new World();
    times(8, () => world.loop('busy', 'good'));
    times(8, () => world.loop('bad', 'failing'));
    world.runUntil(20_000);
    expect(world.count('bad', 10_000)).toBeGreaterThan(40);
  });
});

describe('agents that come back after a restart', () => {
  test.each([1, 1_000])('go on at the full rate, from %i addresses', (addresses) => {
    const world = new World();
    times(1_000, (index) => world.agent(`agent ${index % addresses}`));
    world.runUntil(7_000);
    expect(world.count('agent')).toBe(1_000);
  });

  test('go on at the full rate beside a flood, which began with them', () => {
    const world = new World();
    const agents: PendingConnection[] = [];
    times(1_000, (index) => world.agent(`agent ${index}`, (connection) => agents.push(connection)));
    world.flood(2_750, 300);
    world.runUntil(8_000);
    expect(agents).toHaveLength(1_000);
  });

  test('go on at the full rate beside a flood that was there before', () => {
    const world = new World();
    const agents: PendingConnection[] = [];
    const come = (index: number) =>
      world.agent(`agent ${index}`, (connection) => agents.push(connection));
    times(1_000, come);
    world.runUntil(8_000);
    world.flood(2_750, 300);
    world.runUntil(16_000);
    for (const agent of agents.splice(0)) agent.left();
    times(1_000, come);
    world.runUntil(24_500);
    expect(agents).toHaveLength(1_000);
  });

  test('are let in beside one of their address that fails, and strangers that come again', () => {
    const world = new World();
    times(40, (index) => world.loop(`stranger ${index}`, 'failing'));
    world.loop('site', 'failing');
    world.runUntil(1_000);
    times(200, () => world.agent('site'));
    world.runUntil(21_000);
    const { connections, strangers } = world.slots.counts;
    expect(connections).toBeGreaterThan(200);
    expect(strangers).toBe(0);
    expect(world.count('site', 1_000)).toBeGreaterThanOrEqual(200);
  });

  test('are let in while 700 networks begin handshakes that they do not end', () => {
    const world = new World();
    times(700, (index) => world.stall(`stalled ${index}`));
    world.runUntil(120_000);
    times(20, (index) => world.agent(`agent ${index}`));
    world.runUntil(140_000);
    expect(world.count('agent')).toBe(20);
  });
});

test('a flood of strangers costs the least rate, and less than its first seconds', () => {
  const world = new World();
  let next = 0;
  const flood = () => {
    times(3, () => {
      next += 1;
      world.dial(`flood ${next}`, (connection) =>
        world.after(5, () => {
          connection.failed();
          connection.left();
        }),
      );
    });
    world.after(10, flood);
  };
  flood();
  world.runUntil(30_000);
  expect(world.count('flood', 10_000)).toBeLessThanOrEqual(20 * 21);
  expect(world.count('flood', 10_000)).toBeGreaterThan(20 * 18);
});

test('strangers that come in and show nothing are a flood as well', () => {
  const world = new World();
  let next = 0;
  const flood = () => {
    next += 1;
    world.dial(`flood ${next}`, (connection) => world.after(5, () => connection.entered()));
    world.after(5, flood);
  };
  flood();
  world.runUntil(30_000);
  expect(world.count('flood', 10_000)).toBeLessThanOrEqual(20 * 21);
});

test('networks that come in and show nothing, again and again, keep no newcomer out', () => {
  const world = new World({ handshakesPerSecond: 30, strangersPerSecondMin: 10 });
  const again = (from: string) => {
    const begins = (connection: PendingConnection) => {
      connection.entered();
      world.after(12_000, () => {
        connection.left();
        again(from);
      });
    };
    world.dial(from, begins, () => again(from));
  };
  times(300, (index) => again(`idle ${index}`));
  world.runUntil(60_000);
  times(10, (index) => world.agent(`operator ${index}`));
  world.runUntil(80_000);
  expect(world.count('operator')).toBe(10);
});

describe('a full house', () => {
  const silent = { begin: () => undefined, end: () => undefined };

  test('lets the first silent one go of the network with most, for a newcomer', () => {
    const world = new World();
    const ended: string[] = [];
    const enter = (from: string, name: string) =>
      world.slots.arrive(from, { ...silent, end: () => ended.push(name) });
    times(2_047, (index) => enter('b', `b ${index}`));
    times(2_048, (index) => enter('a', `a ${index}`));
    times(2_047, (index) => enter('c', `c ${index}`));
    enter('d', 'd 0');
    enter('d', 'd 1');
    expect(ended).toEqual([]);
    world.agent('newcomer');
    world.runUntil(1_000);
    expect(world.count('newcomer')).toBe(1);
    expect(ended).toEqual(['a 0']);
    expect(world.slots.counts).toMatchObject({ connections: 6_144, refused: 1 });
  });

  test('has room for a network as long as one that is known is connected, and an hour', () => {
    const world = new World({ connectionsMax: 8, connectionsForKnownMax: 2 });
    const stays = world.slots.arrive('site', silent);
    stays?.ready();
    stays?.entered();
    stays?.vouched();
    const others = times(6, (index) => world.slots.arrive(`other ${index}`, silent));
    for (const other of others) other?.ready();
    world.runUntil(2 * 3_600_000);
    expect(world.slots.counts).toMatchObject({ connections: 6, waiting: 0 });
    const again = world.slots.arrive('site', silent);
    expect(again).toBeDefined();
    again?.left();
    stays?.left();
    world.slots.arrive('other 1', silent)?.ready();
    world.runUntil(3 * 3_600_000 - 1);
    const late = world.slots.arrive('site', silent);
    expect(late).toBeDefined();
    late?.left();
    world.runUntil(3 * 3_600_000);
    expect(world.slots.arrive('site', silent)).toBeUndefined();
  });
});
