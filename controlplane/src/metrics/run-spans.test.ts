import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  asRunNumber,
  FailureType,
  RunKind,
  RunOutcome,
  RunSchema,
  StepState,
} from '@rackwright/messages';
import { operationTrace } from '@rackwright/trace';
import { expect, test } from 'vitest';
import { spansOf } from './run-spans.ts';

const host = { name: 'hosts/h', uid: 'u' };
const at = (seconds: number) => timestampFromMs(seconds * 1_000);
const callId = '00f067aa0ba902b7';
const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';

function runOf(flags: string) {
  return create(RunSchema, {
    kind: RunKind.CLEAN,
    number: asRunNumber(4),
    outcome: RunOutcome.FAILED,
    error: { type: FailureType.IO_ERROR, message: 'disk sda of rack 7 is broken' },
    startTime: at(0),
    endTime: at(90),
    traceParent: `00-${traceId}-${callId}-${flags}`,
    steps: [
      { name: 'power.off', state: StepState.SUCCEEDED, startTime: at(1), endTime: at(2) },
      { name: 'deploy.erase_devices', state: StepState.FAILED, startTime: at(2), endTime: at(9) },
      { name: 'never', state: StepState.PENDING },
    ],
  });
}

test('a run stands below its call, its steps below it, and operations below their steps', () => {
  const [run, off, erase, ...more] = spansOf(host, runOf('01'));
  expect(more).toEqual([]);
  expect(run).toMatchObject({ name: 'clean', traceId, parentSpanId: callId, failure: 'ioError' });
  expect([off?.parentSpanId, erase?.parentSpanId]).toEqual([run?.spanId, run?.spanId]);
  expect(erase).toMatchObject({ startMs: 2_000, endMs: 9_000, failure: 'failed' });
  const operation = operationTrace('u/4/1/1', runOf('01').traceParent);
  expect(operation).toMatchObject({ traceId, parentSpanId: erase?.spanId });
});

test('no span carries what people or disks are called', () => {
  expect(JSON.stringify(spansOf(host, runOf('01')))).not.toContain('sda');
});

test('a trace that is not recorded has no spans', () => {
  expect(spansOf(host, runOf('00'))).toEqual([]);
});
