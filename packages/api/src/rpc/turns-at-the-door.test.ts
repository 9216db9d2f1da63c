import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { TurnsAtTheDoor, type Visitor } from './turns-at-the-door.ts';

const limits = {
  connectionsMax: 8,
  connectionsPerAddressMax: 6,
  handshakesMax: 3,
  handshakesPerAddressMax: 2,
  suspectHandshakesMax: 1,
  suspectForMs: 100,
};

function door() {
  const clock = { now: 0 };
  const turns = new TurnsAtTheDoor(limits, () => clock.now);
  const begun: string[] = [];
  const arrive = (from: string, name = from): Visitor | undefined =>
    turns.arrive(from, () => begun.push(name));
  return { clock, turns, begun, arrive };
}

describe('the door', () => {
  test('refuses who comes when it is full, and takes the next one when somebody has left', () => {
    const { turns, arrive } = door();
    const first = Array.from({ length: 6 }, () => arrive('a'));
    expect(arrive('a')).toBeUndefined();
    expect([arrive('b'), arrive('b')]).not.toContain(undefined);
    expect(arrive('c')).toBeUndefined();
    expect(turns.counts).toMatchObject({ connections: 8, refused: 2 });
    first[0]?.left();
    expect(arrive('c')).toBeDefined();
  });

  test('gives an address with few its turn before the next one of an address with many', () => {
    const { begun, arrive } = door();
    const many = ['a1', 'a2', 'a3', 'a4', 'a5'].map((name) => arrive('a', name));
    arrive('b', 'b1');
    arrive('c', 'c1');
    expect(begun).toEqual(['a1', 'a2', 'b1']);
    many[0]?.turnOver();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3']);
    many[1]?.left();
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'c1']);
  });

  test('lets addresses that failed lately come last, and few of them at once', () => {
    const { clock, begun, arrive } = door();
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

  test('forgets who leaves while it waits', () => {
    const { turns, begun, arrive } = door();
    const [one, , third] = ['a1', 'a2', 'a3'].map((name) => arrive('a', name));
    third?.left();
    one?.turnOver();
    expect(begun).toEqual(['a1', 'a2']);
    expect(turns.counts).toEqual({ connections: 2, waiting: 0, handshakes: 1, refused: 0 });
  });

  test('holds its limits and counts nobody who has gone, whatever comes in whatever order', () => {
    const act = fc.record({
      kind: fc.constantFrom('arrive', 'turnOver', 'failed', 'left'),
      from: fc.constantFrom('a', 'b', 'c', 'd'),
      which: fc.nat(20),
    });
    const check = (acts: readonly { kind: string; from: string; which: number }[]) => {
      const { turns, arrive } = door();
      const inside: Visitor[] = [];
      for (const { kind, from, which } of acts) {
        const visitor = inside[which % Math.max(inside.length, 1)];
        if (kind === 'arrive') inside.push(...[arrive(from)].filter((each) => each !== undefined));
        else if (kind === 'turnOver') visitor?.turnOver();
        else if (kind === 'failed') visitor?.failed();
        else visitor?.left();
        const { connections, handshakes, waiting } = turns.counts;
        expect(connections).toBeLessThanOrEqual(limits.connectionsMax);
        expect(handshakes).toBeLessThanOrEqual(limits.handshakesMax);
        expect(waiting + handshakes).toBeLessThanOrEqual(connections);
      }
      for (const visitor of inside) visitor.left();
      expect(turns.counts).toMatchObject({ connections: 0, waiting: 0, handshakes: 0 });
    };
    fc.assert(fc.property(fc.array(act, { maxLength: 60 }), check));
  });
});
