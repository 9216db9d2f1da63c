/** Events of a boot become a list of steps that stays short, for any events. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { afterEvent, type Waterfall, type WaterfallEvent } from './waterfall.ts';

const event = (told: Partial<WaterfallEvent>): WaterfallEvent => ({
  ...{ stage: 'discover', program: 'firmware', kind: 'came', bytes: 0, problem: '' },
  ...told,
});

function waterfallOf(events: readonly WaterfallEvent[]): Waterfall {
  return events.reduce<Waterfall>((before, one, at) => afterEvent(before, one, at * 100), []);
}

test('a repeated request is the same step, with its last time and its last failure', () => {
  const kernel = { stage: 'kernel', program: 'loader', transport: 'http' } as const;
  const steps = waterfallOf([
    event({ problem: 'another server is at work' }),
    event({}),
    event({ program: 'loader' }),
    event(kernel),
    event({ ...kernel, kind: 'failed', problem: 'cut' }),
    event(kernel),
    event({ ...kernel, kind: 'sent', bytes: 7 }),
  ]);
  expect(steps).toEqual([
    { ...event({}), kind: undefined, firstMs: 0, lastMs: 100, count: 2 },
    { ...event({ program: 'loader' }), kind: undefined, firstMs: 200, lastMs: 200, count: 1 },
    {
      ...kernel,
      ...{ firstMs: 300, lastMs: 500, count: 2, endMs: 600, bytes: 7, problem: '' },
    },
  ]);
});

const events = fc.array(
  fc.record({
    stage: fc.constantFrom(
      ...(['discover', 'offer', 'request', 'ack', 'loader'] as const),
      ...(['script', 'kernel', 'initrd', 'runner'] as const),
    ),
    program: fc.constantFrom('firmware', 'loader', 'system'),
    kind: fc.constantFrom('came', 'sent', 'failed'),
    bytes: fc.nat(),
    problem: fc.string(),
  }),
  { maxLength: 200 },
);

test('a list has one step for each stage and program, and loses no count', () => {
  fc.assert(
    fc.property(events, (all) => {
      const steps = waterfallOf(all);
      const names = all.map(({ stage, program }) => `${stage} ${program}`);
      expect(steps.map(({ stage, program }) => `${stage} ${program}`)).toEqual([...new Set(names)]);
      const count = steps.reduce((sum, step) => sum + step.count, 0);
      expect(count).toBe(all.filter(({ kind }) => kind === 'came').length);
      const bytes = steps.reduce((sum, step) => sum + step.bytes, 0);
      expect(bytes).toBe(all.reduce((sum, one) => sum + (one.kind === 'sent' ? one.bytes : 0), 0));
    }),
  );
});
