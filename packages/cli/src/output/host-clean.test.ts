/** What a clean leaves to be read of a host. */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  ErasureLevel,
  HostSchema,
  RunKind,
  RunPhase,
  StepState,
} from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { hostFields } from './host.ts';

const clock: Clock = { nowMs: () => 1_000_000, suspendAwareMs: () => 0, after: () => () => {} };

const host = create(HostSchema, {
  name: 'hosts/h1',
  status: {
    lastCleaned: { at: timestampFromMs(940_000), level: ErasureLevel.METADATA_ONLY },
    afterFailure: {
      run: 'clean 4',
      bootOnly: 'runner',
      runnerUntil: timestampFromMs(1_060_000),
    },
    run: {
      kind: RunKind.CLEAN,
      number: asRunNumber(4),
      phase: RunPhase.ENDED,
      steps: [
        {
          name: 'firmware.flash',
          state: StepState.SKIPPED,
          skip: { by: 'user:ann', reason: 'done by hand' },
        },
      ],
    },
  },
});

test('level, stay in the runner, and who left a step out stand among the fields', () => {
  const fields = hostFields(host, clock);
  expect(fields).toContainEqual(['last cleaned', '1m ago, metadata-only']);
  expect(fields).toContainEqual([
    'after clean 4',
    'boots only the runner or rescue; switched off in 1m; it can be resumed',
  ]);
  expect(fields.map(([, text]) => text)).toContainEqual(
    'skipped firmware.flash: left out by user:ann (done by hand)',
  );
});
