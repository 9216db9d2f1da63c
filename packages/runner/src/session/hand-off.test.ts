import { create } from '@bufbuild/protobuf';
import { type OperationId } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import * as runner from '@rackwright/messages/runner';
import { resultFromWire } from '@rackwright/results';
import { expect, test } from 'vitest';
import { RunnerProtocol, type SessionEffect } from './protocol.ts';
import { decodeRecord, emptyRecord, encodeRecord, type RunnerRecord } from './record.ts';

const step = 'run.script';
const reboot = create(agent.RunStepSchema, {
  step,
  handOff: true,
  arguments: { script: 'reboot -f' },
});

function session(record: RunnerRecord = emptyRecord): RunnerProtocol {
  const made = new RunnerProtocol(record, [step], 0);
  made.handle({ kind: 'accepted', runnerSession: 's' }, 0);
  return made;
}

/** The record as a restarted runner finds it. */
function restarted(before: RunnerProtocol): RunnerProtocol {
  return session(decodeRecord(encodeRecord(before.record, 'boot'), 'boot'));
}

function order(it: RunnerProtocol, operationId: OperationId, value = reboot): string[] {
  const kind = { case: 'runStep', value } as const;
  return brief(
    it.handle({ kind: 'order', order: create(runner.OrderSchema, { operationId, kind }) }, 1),
  );
}

function checked(it: RunnerProtocol): string[] {
  const result = { kind: 'complete' as const };
  return brief(it.handle({ kind: 'ended', operationId: 'a', result, handOff: reboot }, 2));
}

function received(it: RunnerProtocol, handOff: boolean): string[] {
  return brief(it.handle({ kind: 'reportReceived', operationId: 'a', handOff }, 3));
}

function brief(effects: readonly SessionEffect[]): string[] {
  return effects.map((effect) => {
    switch (effect.kind) {
      case 'send': {
        const { message } = effect;
        return message.case === 'report' ? resultFromWire(message.value).kind : 'other';
      }
      case 'crashPoint':
        return effect.name;
      case 'save':
        return `save ${effect.record.handOff?.acting ?? 'no'} hand-off`;
      default:
        return effect.kind;
    }
  });
}

test('a hand-off is reported complete before it acts, and acts only once that is recorded', () => {
  const it = session();
  expect(order(it, 'a')).toEqual(['save no hand-off', 'runner.received', 'checkHandOff']);
  expect(checked(it)).toEqual(['save false hand-off', 'complete', 'runner.reported']);
  expect(received(it, true)).toEqual([
    'save true hand-off',
    'runner.handingOff',
    'continuing',
    'handOff',
  ]);
});

test('a hand-off never acts if its report was not applied; others may then begin', () => {
  const it = session();
  order(it, 'a');
  checked(it);
  expect(received(it, false)).toEqual(['save no hand-off']);
  expect(received(it, true)).toEqual([]);
  expect(order(it, 'b')).toContain('checkHandOff');
});

test('a hand-off acts once, however often it is told', () => {
  const it = session();
  order(it, 'a');
  checked(it);
  received(it, true);
  expect(received(it, true)).toEqual([]);
  expect(order(it, 'a')).toEqual(['retryAfter']);
});

test('a hand-off acts after a restart before it was told, with what had been ordered', () => {
  const first = session();
  order(first, 'a');
  checked(first);
  const second = restarted(first);
  expect(second.unreceivedIds).toEqual(['a']);
  const effects = second.handle({ kind: 'reportReceived', operationId: 'a', handOff: true }, 3);
  expect(effects.at(-1)).toMatchObject({ kind: 'handOff', order: reboot });
});

test('a hand-off does not act again after a restart while it acted', () => {
  const first = session();
  order(first, 'a');
  checked(first);
  received(first, true);
  const second = restarted(first);
  expect(second.unreceivedIds).toEqual([]);
  expect(received(second, true)).toEqual([]);
  expect(order(second, 'a')).toEqual(['retryAfter']);
});

test('no other operation begins after the report of a hand-off', () => {
  const it = session();
  order(it, 'a');
  checked(it);
  expect(order(it, 'b')).toEqual(['retryAfter']);
  received(it, true);
  expect(order(it, 'b')).toEqual(['retryAfter']);
  expect(order(restarted(it), 'b')).toEqual(['retryAfter']);
});

test('a hand-off that was cut short before its report is interrupted, and never acts', () => {
  const first = session();
  order(first, 'a');
  const second = restarted(first);
  expect(received(second, true)).toEqual(['save no hand-off']);
});
