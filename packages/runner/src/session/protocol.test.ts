import { create } from '@bufbuild/protobuf';
import { type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { resultFromWire } from '@rackwright/results';
import { expect, test } from 'vitest';
import { progressIntervalMs, RunnerProtocol, type SessionEffect } from './protocol.ts';
import { decodeRecord, emptyRecord, encodeRecord, type RunnerRecord } from './record.ts';

const step = 'deploy.erase_devices';

function session(record: RunnerRecord = emptyRecord): RunnerProtocol {
  const made = new RunnerProtocol(record, [step], 0);
  made.handle({ kind: 'accepted', runnerSession: 's' }, 0);
  return made;
}

function order(operationId: OperationId, name = step): runner.Order {
  const value = create(agent.RunStepSchema, { step: name });
  return create(runner.OrderSchema, { operationId, kind: { case: 'runStep', value } });
}

function received(operationId: OperationId, handOff = false) {
  return { kind: 'reportReceived' as const, operationId, handOff };
}

function cancel(operationId: OperationId, of: string): runner.Order {
  const value = create(agent.CancelSchema, { operationId: of });
  return create(runner.OrderSchema, { operationId, kind: { case: 'cancel', value } });
}

/** Effects in short: the action, and the report about which operation. */
function brief(effects: readonly SessionEffect[]): string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case 'send': {
        const { message } = effect;
        if (message.case === 'evidence') return `evidence ${message.value.operationId}`;
        if (message.case !== 'report') return `send ${message.case}`;
        const result = resultFromWire(message.value);
        const detail =
          result.kind === 'failed'
            ? result.type
            : result.kind === 'retryAfter'
              ? result.reason
              : '';
        return `${result.kind} ${detail} ${message.value.operationId}`.replace('  ', ' ');
      }
      case 'crashPoint':
        return effect.name;
      case 'runStep':
      case 'inspect':
      case 'stop':
      case 'checkHandOff':
      case 'handOff':
        return `${effect.kind} ${effect.operationId}`;
      case 'save':
        return `save ${effect.record.outstanding?.operationId ?? 'nothing'}`;
    }
  });
}

const done = (operationId: OperationId) => ({
  kind: 'ended' as const,
  operationId,
  result: { kind: 'complete' as const },
  evidence: { operationId },
});

test('the session saves an order before it is begun, and its end before it is reported', () => {
  const it = session();
  expect(brief(it.handle({ kind: 'order', order: order('a') }, 1))).toEqual([
    'save a',
    'runner.received',
    'runStep a',
  ]);
  expect(brief(it.handle(done('a'), 2))).toEqual([
    'save nothing',
    'evidence a',
    'complete a',
    'runner.reported',
  ]);
});

test('the session reports at once that permitted work has begun, and in all later reports', () => {
  const it = session();
  it.handle({ kind: 'order', order: order('a') }, 1);
  const begun = (effects: readonly SessionEffect[]) =>
    effects.map((effect) => {
      if (effect.kind !== 'send' || effect.message.case !== 'report') return effect.kind;
      const result = resultFromWire(effect.message.value);
      return result.kind === 'continuing' ? result.begun : result.kind;
    });
  const progressed = { kind: 'progressed', operationId: 'a', percent: 4, text: 'waits' } as const;
  const later = progressIntervalMs + 2;
  expect(begun(it.handle(progressed, 2))).toEqual([undefined]);
  expect(begun(it.handle({ kind: 'begun', operationId: 'another' }, 3))).toEqual([]);
  expect(begun(it.handle({ kind: 'begun', operationId: 'a' }, 3))).toEqual([true]);
  expect(begun(it.handle({ kind: 'begun', operationId: 'a' }, 3))).toEqual([]);
  expect(begun(it.handle(progressed, later + 3))).toEqual([true]);
  expect(begun(it.handle({ kind: 'accepted', runnerSession: 's' }, later + 4))).toEqual([true]);
});

test('the session begins an operation id once, whatever is ordered again', () => {
  const it = session();
  const again = () => brief(it.handle({ kind: 'order', order: order('a') }, 1));
  again();
  expect(again()).toEqual(['continuing a']);
  it.handle(done('a'), 2);
  expect(again()).toEqual(['evidence a', 'complete a']);
  it.handle(received('a'), 3);
  expect(again()).toEqual(['retryAfter duplicate a']);
});

test('the session works on one operation at a time', () => {
  const it = session();
  it.handle({ kind: 'order', order: order('a') }, 1);
  expect(brief(it.handle({ kind: 'order', order: order('b') }, 2))).toEqual([
    'retryAfter locked b',
  ]);
});

test('a final report is kept and sent on each connection until it is received', () => {
  const it = session();
  it.handle({ kind: 'order', order: order('a') }, 1);
  it.handle({ kind: 'disconnected' }, 2);
  it.handle(done('a'), 3);
  const accepted = () => brief(it.handle({ kind: 'accepted', runnerSession: 's' }, 4));
  expect(it.unreceivedIds).toEqual(['a']);
  expect(accepted()).toEqual(['evidence a', 'complete a']);
  expect(accepted()).toEqual(['evidence a', 'complete a']);
  it.handle(received('a'), 5);
  expect(accepted()).toEqual([]);
});

test('an operation of a dead predecessor is reported interrupted, with its progress', () => {
  const first = session();
  first.handle({ kind: 'order', order: order('a') }, 1);
  const progress = '{"devices":{"S":"challenged"}}';
  first.handle({ kind: 'stageReached', operationId: 'a', progress }, 2);
  const stored = encodeRecord(first.record, 'boot-1');

  const second = new RunnerProtocol(decodeRecord(stored, 'boot-1'), [step], 10);
  expect(second.unreceivedIds).toEqual(['a']);
  const effects = second.handle({ kind: 'accepted', runnerSession: 's' }, 11);
  expect(brief(effects)).toEqual(['failed interrupted a']);
  const [effect] = effects;
  if (effect?.kind !== 'send' || effect.message.case !== 'report') throw new Error('no report');
  expect(resultFromWire(effect.message.value)).toMatchObject({ lastProgress: progress });
  expect(brief(second.handle({ kind: 'order', order: order('a') }, 12))).toEqual([
    'failed interrupted a',
  ]);
});

test('the session ignores a record of another boot', () => {
  const first = session();
  first.handle({ kind: 'order', order: order('a') }, 1);
  expect(decodeRecord(encodeRecord(first.record, 'boot-1'), 'boot-2')).toEqual(emptyRecord);
});

test('the session keeps reports and evidence across a restart', () => {
  const first = session();
  first.handle({ kind: 'order', order: order('a') }, 1);
  first.handle(done('a'), 2);
  first.handle({ kind: 'order', order: order('b') }, 3);
  first.handle(done('b'), 4);
  first.handle(received('a'), 5);
  const record = decodeRecord(encodeRecord(first.record, 'boot'), 'boot');
  expect(record).toEqual(first.record);
  const second = session(record);
  expect(brief(second.handle({ kind: 'order', order: order('a') }, 6))).toEqual([
    'retryAfter duplicate a',
  ]);
});

test('the session refuses to go on with a damaged record', () => {
  expect(() => decodeRecord(new TextEncoder().encode('{'), 'boot')).toThrow('is damaged');
});

test('Cancel is answered once the step is over, after the step’s report', () => {
  const it = session();
  it.handle({ kind: 'order', order: order('a') }, 1);
  expect(brief(it.handle({ kind: 'order', order: cancel('a/cancel', 'a') }, 2))).toEqual([
    'stop a',
  ]);
  it.handle({ kind: 'order', order: cancel('a/cancel', 'a') }, 2);
  expect(brief(it.handle(done('a'), 3)).slice(-3)).toEqual([
    'complete a',
    'runner.reported',
    'complete a/cancel',
  ]);
  expect(brief(it.handle({ kind: 'order', order: cancel('x/cancel', 'x') }, 4))).toEqual([
    'complete x/cancel',
  ]);
});

test('the session never takes an unknown step or kind for success', () => {
  const it = session();
  expect(brief(it.handle({ kind: 'order', order: order('a', 'bios.reset') }, 1))).toEqual([
    'failed unsupported a',
  ]);
  const unknown = create(runner.OrderSchema, { operationId: 'b' });
  expect(brief(it.handle({ kind: 'order', order: unknown }, 2))).toEqual(['failed unsupported b']);
});

test('the session reports progress at intervals, the latest first', () => {
  const it = session();
  it.handle({ kind: 'order', order: order('a') }, 0);
  const progressed = (percent: number, nowMs: number) =>
    it.handle({ kind: 'progressed', operationId: 'a', percent, text: 't' }, nowMs).length;
  expect(progressed(1, 1)).toBe(1);
  expect(progressed(2, 2)).toBe(0);
  expect(progressed(3, 1 + progressIntervalMs)).toBe(1);
});
