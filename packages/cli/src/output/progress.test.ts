import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { asRunNumber, HostSchema, RunKind, RunPhase, StepState } from '@rackwright/messages';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { barLine, plainLine, workOf } from './progress.ts';
import { widthOf } from './text.ts';

const host = create(HostSchema, {
  name: 'hosts/h1',
  status: {
    run: {
      kind: RunKind.CLEAN,
      number: asRunNumber(3),
      phase: RunPhase.RUNNING,
      startTime: timestampFromMs(0),
      currentStep: 1,
      steps: [
        { name: 'power.bootRunner', state: StepState.SUCCEEDED },
        {
          name: 'deploy.erase_devices',
          state: StepState.RUNNING,
          startTime: timestampFromMs(20_000),
        },
      ],
    },
    progress: { percent: 50 },
  },
});

describe('work under way', () => {
  test('is measured by its steps, and by how far the one under way is', () => {
    expect(workOf(host, 60_000, undefined)).toEqual({
      text: 'hosts/h1  clean 3: 2/2 deploy.erase_devices',
      percent: 75,
      elapsedMs: 60_000,
      leftMs: 40_000,
    });
  });

  test('takes as long as such runs usually take, or as its step says when that is more', () => {
    expect(workOf(host, 60_000, 200_000).leftMs).toBe(140_000);
    expect(workOf(host, 60_000, 61_000).leftMs).toBe(40_000);
    expect(workOf(host, 21_000, undefined).leftMs).toBeUndefined();
  });

  test('is one line with a bar on a terminal, and one without times elsewhere', () => {
    const seen = workOf(host, 60_000, undefined);
    expect(barLine(seen, 100)).toBe(
      'hosts/h1  clean 3: 2/2 deploy.erase_devices  ' +
        '[####################-------]  75%  1m  about 40s left',
    );
    expect(plainLine(seen)).toBe('hosts/h1  clean 3: 2/2 deploy.erase_devices  70%');
  });

  test('fits every terminal, whatever it is called and however far it is', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 120 }),
        fc.option(fc.nat(100), { nil: undefined }),
        fc.option(fc.nat(1e9), { nil: undefined }),
        fc.option(fc.nat(1e9), { nil: undefined }),
        fc.integer({ min: 60, max: 220 }),
        (text, percent, elapsedMs, leftMs, columns) => {
          const line = barLine({ text, percent, elapsedMs, leftMs }, columns);
          expect(widthOf(line)).toBeLessThan(columns);
          expect(line).not.toMatch(/[\r\n\x1b]/);
        },
      ),
    );
  });
});
