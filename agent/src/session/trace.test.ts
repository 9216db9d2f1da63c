import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { runTrace } from '@rackwright/trace';
import { expect, test } from 'vitest';
import { idsOf, spanOf } from './trace.ts';

const times = { startMs: 1, endMs: 2 };
const operation = create(agent.OperationSchema, {
  ...{ id: 'u/7/3/2', hostUid: 'u', hostName: 'hosts/h' },
  kind: { case: 'runStep', value: { step: 'deploy.erase_devices' } },
});

test('an operation’s line and span have the ids of its run, also where nobody called', () => {
  const { traceId, step } = runTrace('u', 7n, '');
  expect(idsOf(operation)).toEqual({ operation: 'u/7/3/2', host: 'u', run: 7, trace: traceId });
  expect(spanOf(operation, { kind: 'complete' }, times)).toMatchObject({
    ...{ name: 'deploy.erase_devices', traceId, parentSpanId: step(3), failure: undefined },
  });
});

test('a span says the type of a failure, and nothing that a BMC or a disk said', () => {
  const failed = { kind: 'failed', type: 'ioError', message: 'sda', detail: 'sdb' } as const;
  const span = spanOf(operation, failed, times);
  expect(span?.failure).toBe('ioError');
  expect(JSON.stringify(span)).not.toMatch(/sda|sdb/);
});

test.each(['', 'u', 'u/7/3/2/cancel', '\u0000/../x/1'])('"%s" is no span', (id) => {
  expect(spanOf({ ...operation, id }, { kind: 'complete' }, times)).toBeUndefined();
});

test('a trace that is not recorded has no span', () => {
  const traceParent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00';
  expect(spanOf({ ...operation, traceParent }, { kind: 'complete' }, times)).toBeUndefined();
});
