import { create } from '@bufbuild/protobuf';
import { agent, store } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import type { ReportVerdict } from '../pass/types.ts';
import { done, failed } from '../testing/bench.ts';
import {
  late,
  noteSettled,
  settledBefore,
  tooLateToAct,
  unsupported,
  verdictBefore,
} from './settled.ts';

const { SettledAnswer } = store;
const operationId = 'u1/1/0/1';
const empty = () => create(store.HostRecordSchema);

function report(result: agent.Report['result'] = done, id = operationId): agent.Report {
  return { ...create(agent.ReportSchema, { operationId: id }), result };
}

/** A record that stores one settled report of `operationId` with this answer. */
function storedAs(answer: store.SettledAnswer): store.HostRecord {
  const settledReports = [{ operationId, result: store.ReportResult.COMPLETE, answer }];
  return create(store.HostRecordSchema, { settledReports });
}

describe('the answer to a report that comes again', () => {
  test.each<[ReportVerdict, boolean, store.SettledAnswer, ReportVerdict]>([
    [{ kind: 'applied' }, false, SettledAnswer.APPLIED, { kind: 'duplicate' }],
    [{ kind: 'applied' }, true, SettledAnswer.MAY_ACT, { kind: 'duplicate' }],
    [late, false, SettledAnswer.ATTEMPT_OVER, late],
    [tooLateToAct, true, SettledAnswer.RUN_OVER, tooLateToAct],
    [unsupported, true, SettledAnswer.UNSUPPORTED, unsupported],
    [settledBefore, false, SettledAnswer.UNSPECIFIED, settledBefore],
  ])('%o (hand-off: %s) is stored as answer %i', (verdict, isHandOff, answer, again) => {
    const record = empty();
    noteSettled({ record }, report(), verdict, { isHandOff });
    expect(record.settledReports).toMatchObject([{ operationId, answer }]);
    expect(verdictBefore(record, report())).toEqual(again);
  });

  test('does not follow the words of its reason', () => {
    const record = empty();
    const reason = 'its attempt was over before';
    const verdict: ReportVerdict = { kind: 'stale', cause: 'runOver', reason };
    noteSettled({ record }, report(), verdict, { isHandOff: true });
    expect(verdictBefore(record, report())).toEqual(tooLateToAct);
  });

  test.each([
    ['is missing', SettledAnswer.UNSPECIFIED],
    ['is of a later version', 99 as store.SettledAnswer],
  ])('is stale when the stored answer %s', (_what, answer) => {
    expect(verdictBefore(storedAs(answer), report())).toEqual(settledBefore);
  });

  test('is not a duplicate when the same report was not applied once', () => {
    const record = empty();
    noteSettled({ record }, report(), { kind: 'applied' }, { isHandOff: false });
    noteSettled({ record }, report(), tooLateToAct, { isHandOff: false });
    expect(verdictBefore(record, report())).toEqual(tooLateToAct);
  });

  test('is for the same operation and the same result alone', () => {
    const record = storedAs(SettledAnswer.APPLIED);
    expect(verdictBefore(record, report(failed('ioError', 'no')))).toBeUndefined();
    expect(verdictBefore(record, report({ case: undefined }))).toBeUndefined();
    expect(verdictBefore(record, report(done, 'u1/1/0/2'))).toBeUndefined();
  });

  test('is not read from the text of a record that was never released', () => {
    const record = create(store.HostRecordSchema, {
      settledOperations: [`${operationId} complete handOff`],
    });
    expect(verdictBefore(record, report())).toBeUndefined();
  });
});

test('the last four settled reports are kept', () => {
  const record = empty();
  const ids = [1, 2, 3, 4, 5].map((attempt) => `u1/1/0/${attempt}`);
  for (const id of ids) {
    noteSettled({ record }, report(done, id), { kind: 'applied' }, { isHandOff: false });
  }
  expect(record.settledReports.map((each) => each.operationId)).toEqual(ids.slice(1));
});
