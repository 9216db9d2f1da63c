/**
 * The agent is killed at every boundary, and at random places. The devices' records and the control
 * plane's reports decide.
 */
import type { agent } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { World } from './testing/world.ts';

/** Crash point → [number of device changes, the report to the control plane]. */
const kills: Readonly<Record<string, readonly [touched: number, end: string]>> = {
  'agent.journalled': [1, 'complete'],
  'agent.begun': [0, 'interrupted'],
  'agent.ended': [1, 'complete'],
  'agent.reported': [1, 'complete'],
};

describe('killed at a boundary', () => {
  for (const [name, expected] of Object.entries(kills)) {
    test(`a kill at ${name} ends ${expected[1]}, after ${expected[0]} touches`, async () => {
      const world = new World();
      await world.bootAndConnect();
      world.crashAt = { name, occurrence: 1 };
      await world.issue(world.erase('h/1/1/1'));
      expect(world.alive).toBe(false);
      await world.bootAndConnect();
      await world.run(5000);
      const outcome = world.controlPlane.outcome('h/1/1/1');
      const end = outcome?.kind === 'failed' ? outcome.type : outcome?.kind;
      expect([world.touched.length, end]).toEqual(expected);
      await world.restart();
      await world.run(1000);
      const applied = new Set(world.controlPlane.reports.map(({ sequence }) => sequence));
      expect(applied.size).toBe(1);
      expect(world.controlPlane.hellos.at(-1)?.operations).toEqual([]);
    });
  }

  test('the journal is passed by exactly these places', async () => {
    const world = new World();
    await world.bootAndConnect();
    await world.issue(world.erase('h/1/1/1'));
    expect(world.passed).toEqual(Object.keys(kills));
  });

  test('an operation that had begun is never unknown while the next life starts', async () => {
    const world = new World();
    await world.bootAndConnect();
    world.crashAt = { name: 'agent.begun', occurrence: 1 };
    await world.issue(world.erase('h/1/1/1'));
    world.resume = () => new Promise(() => {});
    world.boot();
    const states: (string | undefined)[] = [];
    for (let ms = 0; ms < 50; ms += 1) {
      states.push(world.session?.operationState('h/1/1/1'));
      await world.run(1);
    }
    expect(new Set(states)).toEqual(new Set([undefined, 'begun']));
  });

  test('a kill at the next boundary of each restart still ends in one report', async () => {
    const world = new World();
    await world.bootAndConnect();
    world.crashAt = { name: 'agent.journalled', occurrence: 1 };
    await world.issue(world.power('h/1/1/1'));
    for (const name of ['agent.begun', 'agent.ended', 'agent.reported']) {
      world.crashAt = { name, occurrence: 1 };
      await world.bootAndConnect();
      await world.run(1000);
      expect(world.alive).toBe(false);
    }
    await world.bootAndConnect();
    await world.run(1000);
    expect(world.controlPlane.outcome('h/1/1/1')).toMatchObject({ type: 'interrupted' });
    expect(world.touched).toEqual([]);
  });
});

type Event =
  | { readonly kind: 'issue'; readonly host: string; readonly destructive: boolean }
  | { readonly kind: 'cancel' }
  | { readonly kind: 'repeat' }
  | { readonly kind: 'kill' }
  | { readonly kind: 'killAt'; readonly name: string; readonly occurrence: number }
  | { readonly kind: 'cut' }
  | { readonly kind: 'away'; readonly away: boolean }
  | { readonly kind: 'disk'; readonly failing: boolean; readonly keptFraction: number }
  | { readonly kind: 'run'; readonly ms: number };

const events: fc.Arbitrary<Event> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('issue' as const),
      host: fc.constantFrom('a', 'b', 'c'),
      destructive: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'cancel' as const }) },
  { weight: 1, arbitrary: fc.constant({ kind: 'repeat' as const }) },
  { weight: 2, arbitrary: fc.constant({ kind: 'kill' as const }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant('killAt' as const),
      name: fc.constantFrom(...Object.keys(kills)),
      occurrence: fc.integer({ min: 1, max: 3 }),
    }),
  },
  { weight: 1, arbitrary: fc.constant({ kind: 'cut' as const }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('away' as const), away: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('disk' as const),
      failing: fc.boolean(),
      keptFraction: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ kind: fc.constant('run' as const), ms: fc.nat({ max: 3000 }) }),
  },
);

class Story {
  readonly world: World;
  #attempts = 0;
  readonly #ids: string[] = [];

  constructor(seed: number) {
    this.world = new World(seed);
    // A runner that was given its order goes on without the agent.
    this.world.resume = ({ id }, context) =>
      this.world.touched.includes(id) ? this.#finish(context.signal) : 'interrupted';
    this.world.work = async (_operation, context, touch) => {
      await context.begin();
      touch();
      return this.#finish(context.signal);
    };
  }

  /** What a control plane does that crashed after sending: only to the journal it sent it to. */
  #repeat(): void {
    const { controlPlane } = this.world;
    const last = controlPlane.issued.get(this.#ids.at(-1) ?? '');
    const journal = controlPlane.hellos.at(-1)?.journal;
    if (last?.outcome === undefined && last?.sentTo?.id === journal?.id && last !== undefined) {
      controlPlane.send({ case: 'operation', value: last.operation });
    }
  }

  async tell(event: Event): Promise<void> {
    const { world } = this;
    const { controlPlane } = world;
    switch (event.kind) {
      case 'issue':
        return controlPlane.issue(this.#operation(event.host, event.destructive));
      case 'cancel': {
        const target = this.#ids.at(-1) ?? 'a/0/0/0';
        this.#attempts += 1;
        const host = target.slice(0, target.indexOf('/'));
        return controlPlane.issue(world.cancel(`${host}/c/${this.#attempts}/1`, target));
      }
      case 'repeat':
        return this.#repeat();
      case 'kill':
        world.kill();
        return world.boot();
      case 'killAt':
        world.crashAt = event;
        return;
      case 'cut':
        return controlPlane.cut();
      case 'away':
        controlPlane.reachable = !event.away;
        return controlPlane.cut();
      case 'disk':
        world.disk.failing = event.failing;
        world.disk.keptFraction = event.keptFraction;
        return;
      case 'run':
        await world.run(event.ms);
        if (!world.alive) world.boot();
        return;
    }
  }

  /** Everything works again: each operation must end. */
  async conclude(): Promise<void> {
    const { world } = this;
    world.crashAt = undefined;
    world.disk.failing = false;
    world.controlPlane.reachable = true;
    world.kill();
    world.boot();
    await world.run(60_000);
    await world.restart();
    await world.run(10_000);
  }

  #operation(host: string, destructive: boolean): agent.Operation {
    this.#attempts += 1;
    const id = `${host}/1/${this.#attempts}/1`;
    this.#ids.push(id);
    return destructive ? this.world.erase(id) : this.world.power(id);
  }

  async #finish(signal: AbortSignal) {
    await this.world.clock.sleep(500);
    return signal.aborted
      ? ({ kind: 'failed', type: 'cancelled', message: 'stopped' } as const)
      : ({ kind: 'complete' } as const);
  }
}

describe('killed anywhere', () => {
  test('no operation begins twice, each ends, and reports come in order', async () => {
    await fc.assert(
      fc.asyncProperty(fc.nat(), fc.array(events, { maxLength: 40 }), async (seed, list) => {
        const story = new Story(seed);
        const { world } = story;
        const { controlPlane } = world;
        await world.bootAndConnect();
        for (const event of list) await story.tell(event);
        await story.conclude();
        expect(world.touched).toEqual([...new Set(world.touched)]);
        for (const [id, { outcome }] of controlPlane.issued) {
          expect(outcome?.kind, id).toBeDefined();
          expect(outcome?.kind, id).not.toBe('unsupported');
          if (outcome?.kind === 'complete' && !id.includes('/c/')) {
            expect(world.touched).toContain(id);
          }
        }
        expect(controlPlane.hellos.at(-1)?.operations).toEqual([]);
        expectOneReportEach(controlPlane.reports);
      }),
      { numRuns: 150 },
    );
  });
});

/** The report of an operation never changes, however often it is requested. */
function expectOneReportEach(reports: readonly agent.Report[]): void {
  const said = new Map<string, string>();
  for (const { operationId, result } of reports) {
    const text = `${result.case} ${result.case === 'failed' ? result.value.type : ''}`;
    const before = said.get(operationId) ?? text;
    said.set(operationId, before);
    expect(text, operationId).toBe(before);
  }
}
