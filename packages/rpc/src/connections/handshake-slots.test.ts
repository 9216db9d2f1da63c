import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type ConnectionLimits,
  HandshakeSlots,
  type PendingConnection,
} from './handshake-slots.ts';

const limits = {
  connectionsMax: 8,
  connectionsPerAddressMax: 6,
  connectionsForKnownMax: 0,
  strangersMax: 100,
  knownForMs: 1_000,
  handshakesPerSecond: 1_000,
  handshakesBurst: 100,
  handshakesPerAddressPerSecond: 1_000,
  handshakesPerAddressBurst: 1_000,
  strangersPerSecondMin: 10,
  handshakesMax: 3,
  handshakesPerAddressMax: 2,
  suspectHandshakesMax: 1,
  suspectForMs: 100,
};

function slotsWith(more: Partial<ConnectionLimits> = {}) {
  const clock = {
    now: 0,
    due: [] as (() => void)[],
    nowMs: () => clock.now,
    after: (_ms: number, act: () => void) => {
      clock.due.push(act);
      return () => undefined;
    },
  };
  const slots = new HandshakeSlots({ ...limits, ...more }, clock);
  const begun: string[] = [];
  const ended: string[] = [];
  const arrive = (from: string, name = from): PendingConnection | undefined => {
    const commands = { begin: () => begun.push(name), end: () => ended.push(name) };
    const connection = slots.arrive(from, commands);
    connection?.ready();
    return connection;
  };
  return { clock, slots, begun, ended, arrive };
}

describe('the listener', () => {
  test('refuses a connection when full, and accepts one after another has left', () => {
    const { slots, arrive } = slotsWith({ handshakesMax: 8, handshakesPerAddressMax: 6 });
    const first = Array.from({ length: 6 }, () => arrive('a'));
    expect(arrive('a')).toBeUndefined();
    expect([arrive('b'), arrive('b')]).not.toContain(undefined);
    expect(arrive('c')).toBeUndefined();
    expect(slots.counts).toMatchObject({ connections: 8, refused: 2 });
    first[0]?.left();
    expect(arrive('c')).toBeDefined();
  });

  test('gives an address with few connections its slot before an address with many', () => {
    const { begun, arrive } = slotsWith();
    const many = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => arrive('a', name));
    arrive('b', 'b1');
    arrive('c', 'c1');
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    many[0]?.slotOver();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1']);
    many[1]?.left();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3']);
  });

  test('lets addresses that failed lately come last, and few of them at once', () => {
    const { clock, begun, arrive } = slotsWith();
    const first = arrive('a', 'a1');
    first?.failed();
    first?.left();
    for (const name of ['a2', 'a3']) arrive('a', name);
    for (const name of ['b1', 'b2']) arrive('b', name);
    expect(begun).toEqual(['a1', 'a2', 'b1', 'b2']);
    clock.now = 100;
    arrive('c', 'c1')?.left();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'b2']);
  });

  test('begins at most the allowed handshakes per second, and the rest after them', () => {
    const { clock, begun, arrive } = slotsWith({ handshakesPerSecond: 10, handshakesBurst: 1 });
    for (const name of ['a', 'b', 'c']) arrive(name);
    expect(begun).toEqual(['a']);
    for (const now of [100, 200]) {
      clock.now = now;
      for (const act of clock.due.splice(0)) act();
    }
    expect(begun).toEqual(['a', 'b', 'c']);
  });

  test('gives networks of which somebody is known two slots of three, and strangers one', () => {
    const { begun, arrive } = slotsWith({
      ...{ connectionsMax: 100, handshakesMax: 1, handshakesPerAddressMax: 1 },
      connectionsPerAddressMax: 50,
    });
    const agent = arrive('k', 'first');
    agent?.entered();
    agent?.vouched();
    const all = Array.from({ length: 9 }, () => [arrive('k'), arrive('a')]).flat();
    for (let round = 0; round < 12; round += 1) {
      const at = begun.length;
      for (const each of all) if (begun.length === at) each?.slotOver();
    }
    const of = (name: string) => begun.slice(3, 12).filter((each) => each === name).length;
    expect([of('k'), of('a')]).toEqual([6, 3]);
  });

  test('keeps slots for known networks when strangers do not end theirs', () => {
    const { begun, arrive } = slotsWith({ connectionsMax: 40, handshakesMax: 4 });
    const agent = arrive('k', 'k1');
    agent?.entered();
    agent?.vouched();
    for (const name of ['a', 'b', 'c', 'd', 'e']) arrive(name);
    expect(begun).toEqual(['k1', 'a', 'b', 'c']);
    arrive('k', 'k2');
    expect(begun).toEqual(['k1', 'a', 'b', 'c', 'k2']);
  });

  test('limits admitted strangers, and ends the oldest of the network that has the most', () => {
    const { slots, ended, arrive } = slotsWith({ strangersMax: 3, handshakesPerAddressMax: 10 });
    const all = ['a1', 'b1', 'b2', 'b3'].map((name) => arrive(name.charAt(0), name));
    all[1]?.entered();
    all[1]?.vouched();
    for (const each of [all[0], all[2], all[3]]) each?.entered();
    expect(ended).toEqual([]);
    const last = arrive('c', 'c1');
    last?.entered();
    expect(ended).toEqual(['b2']);
    expect(slots.counts).toMatchObject({ strangers: 3, strangersEnded: 1 });
  });

  test('gives no slot to a connection that sends nothing', () => {
    const { slots, begun, arrive } = slotsWith({ handshakesMax: 1 });
    const silent = slots.arrive('s', { begin: () => begun.push('s'), end: () => undefined });
    arrive('a');
    expect(begun).toEqual(['a']);
    expect(slots.counts).toMatchObject({ connections: 2, waiting: 0, handshakes: 1 });
    silent?.left();
    silent?.ready();
    expect(slots.counts).toMatchObject({ connections: 1, waiting: 0 });
  });

  test('forgets a connection that leaves while it waits', () => {
    const { slots, begun, arrive } = slotsWith();
    const [one, , third] = ['a1', 'a2', 'a3'].map((name) => arrive('a', name));
    third?.left();
    one?.slotOver();
    expect(begun).toEqual(['a1', 'a2']);
    expect(slots.counts).toMatchObject({ connections: 2, waiting: 0, handshakes: 1, refused: 0 });
  });

  test('holds its limits and counts nobody who has gone, whatever comes in whatever order', () => {
    const act = fc.record({
      kind: fc.constantFrom('arrive', 'slotOver', 'failed', 'entered', 'vouched', 'left'),
      from: fc.constantFrom('a', 'b', 'c', 'd'),
      which: fc.nat(20),
    });
    const check = (acts: readonly { kind: string; from: string; which: number }[]) => {
      const { slots, arrive } = slotsWith({ strangersMax: 2 });
      const inside: PendingConnection[] = [];
      for (const { kind, from, which } of acts) {
        const connection = inside[which % Math.max(inside.length, 1)];
        if (kind === 'arrive') inside.push(...[arrive(from)].filter((each) => each !== undefined));
        else if (kind === 'slotOver') connection?.slotOver();
        else if (kind === 'failed') connection?.failed();
        else if (kind === 'entered') connection?.entered();
        else if (kind === 'vouched') connection?.vouched();
        else connection?.left();
        const { connections, handshakes, waiting, strangers } = slots.counts;
        expect(strangers).toBeLessThanOrEqual(2);
        expect(connections).toBeLessThanOrEqual(limits.connectionsMax);
        expect(handshakes).toBeLessThanOrEqual(limits.handshakesMax);
        expect(waiting + handshakes).toBeLessThanOrEqual(connections);
      }
      for (const connection of inside) connection.left();
      expect(slots.counts).toMatchObject({
        connections: 0,
        waiting: 0,
        handshakes: 0,
        strangers: 0,
      });
    };
    fc.assert(fc.property(fc.array(act, { maxLength: 60 }), check));
  });
});
