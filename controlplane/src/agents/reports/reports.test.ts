/** Reports that cannot be folded in: too large, or while the store is unavailable (R7). */
import { create } from '@bufbuild/protobuf';
import {
  agent,
  FailureType,
  HostState,
  InventorySchema,
  type OperationId,
  RunKind,
  RunPhase,
  TransientCause,
  store as wire,
} from '@rackwright/messages';
import type { MemoryCall, MemoryFault } from '@rackwright/store';
import { describe, expect, test } from 'vitest';
import { failed, inspected, nvmeDisk, virtioDisk } from '../../host/testing/bench.ts';
import {
  complete,
  connectAgent,
  type PlainAgent,
  proved,
  toErase,
} from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';

const { APPLIED, DUPLICATE, STALE } = agent.ReportAnswer_Verdict;
const { ENDED } = agent.JournalledOperation_State;
const huge = 'x'.repeat(300 * 1024);
const first = { id: 'u1/1/0/1', hostUid: 'u1' };

async function started(faults?: (call: MemoryCall) => MemoryFault) {
  const rig = rigWith({}, {});
  const replica = await rig.replica(faults === undefined ? {} : { faults });
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

/** The session continues, the report has its answer, and the rack's other host goes on. */
async function expectUnharmed(rig: Rig, plain: PlainAgent, operationId: OperationId) {
  expect(plain.ended).toBe(false);
  expect(plain.of('reportAnswer').map((answer) => answer.operationId)).toContain(operationId);
  await plain.report(proved(2), plain.last('u2'));
  const last = plain.of('reportAnswer').at(-1);
  expect(last).toMatchObject({ verdict: APPLIED });
  expect(last?.settledUpTo).toBe(last?.sequence);
  expect(rig.status('h2').state).toBe(HostState.MANAGEABLE);
}

describe('a report that is too large to be kept', () => {
  test('a report with a failure is kept in part', async () => {
    const { rig, plain } = await started();
    await plain.report(failed('protocol', huge), first);
    await expectUnharmed(rig, plain, first.id);
    const message = rig.status().lastError?.failure?.message ?? '';
    expect(message.length).toBeLessThan(2_048);
    expect(message).toContain('more)');
  });

  test.each<[string, agent.Report['result']]>([
    [
      'a conflict',
      {
        case: 'retryAfter',
        value: create(agent.RetryAfterSchema, {
          reason: agent.ConflictReason.LOCKED,
          message: huge,
          delay: { seconds: 1n },
        }),
      },
    ],
    [
      'a silent BMC',
      {
        case: 'transientError',
        value: create(agent.TransientErrorSchema, {
          cause: TransientCause.UNREACHABLE,
          message: huge,
        }),
      },
    ],
  ])('a report with %s is kept in part, and the run waits', async (_text, result) => {
    const { rig, plain } = await started();
    await plain.report(result, first);
    await expectUnharmed(rig, plain, first.id);
    expect(rig.status().run?.phase).toBe(RunPhase.WAITING);
    expect(rig.status().run?.waiting?.message.length).toBeLessThan(2_048);
  });

  test('a report with an identity ends its attempt as a failure', async () => {
    const { rig, plain } = await started();
    const bmcIdentity = { guid: new Uint8Array(16).fill(1), serial: huge };
    await plain.report(complete({ bmcIdentity }), first);
    await expectUnharmed(rig, plain, first.id);
    expect(rig.status().run?.phase).toBe(RunPhase.ENDED);
    expect(rig.status().lastError?.failure?.message).toContain('could not be taken in');
  });

  test('a report with an inventory ends its attempt as a failure', async () => {
    const { rig, plain } = await started();
    await plain.report(proved(), first);
    await orderedOf(rig, plain);
    const inspection = plain.last('u1');
    expect(inspection.kind.case).toBe('inspect');
    await plain.report(inspected([{ ...virtioDisk, model: huge }]), inspection);
    await expectUnharmed(rig, plain, inspection.id);
    expect(rig.status().lastError?.failure).toMatchObject({ type: FailureType.INVALID_RESULT });
    expect(rig.lastRevision('facts')).toBe(0);
  });

  test('a report with facts that nobody ordered is dropped', async () => {
    const { rig, plain } = await started();
    const inventory = create(InventorySchema, { devices: [{ ...virtioDisk, model: huge }] });
    await plain.facts({ inventory });
    await plain.report(proved(), first);
    await expectUnharmed(rig, plain, first.id);
    expect(rig.lastRevision('facts')).toBe(0);
  });

  test('a report with the progress of an interrupted step is kept in part', async () => {
    const rig = rigWith({});
    const plain = await connectAgent(rig, await rig.replica());
    await toErase(rig, plain, [nvmeDisk]);
    const value = create(agent.FailedSchema, { type: FailureType.INTERRUPTED, lastProgress: huge });
    await plain.report({ case: 'failed', value });
    const { kind } = plain.last();
    if (kind.case !== 'runStep') throw new Error('the check was to be ordered');
    expect(kind.value.mode).toBe(agent.StepMode.CHECK);
    expect(kind.value.arguments['lastProgress']?.length).toBeLessThan(20_000);
    expect(plain.ended).toBe(false);
  });
});

/** Up to the inspection of h1, past the orders for h2 in the meantime. */
async function orderedOf(rig: Rig, plain: PlainAgent) {
  await plain.report(complete(), plain.last('u1'));
  await plain.report(complete(), plain.last('u1'));
  const bootOperationId = `u1/${rig.status().run?.number}/1/1`;
  const runnerReady = { hostUid: 'u1', bootOperationId, runnerSession: 's1', bootId: 'b1' };
  await plain.facts({ runnerReady });
}

describe('while the store is away', () => {
  test('a report ends the session, and is folded in once after the next Hello', async () => {
    let away = false;
    const { rig, replica, plain } = await started(({ key }) => ({
      kind: away && key === 'hosts.h1' ? 'requestLost' : 'none',
    }));
    away = true;
    await plain.report(proved(), first);
    expect(plain.ended).toBe(true);
    expect(plain.of('reportAnswer')).toEqual([]);
    expect(rig.status().state).toBe(HostState.NEW);
    away = false;
    const operations = [{ operationId: first.id, hostUid: 'u1', state: ENDED }];
    const again = await connectAgent(rig, replica, { operations });
    await again.report(proved(), first);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
    expect(rig.record().runCount).toBe(2n);
    expect(rig.status().run?.kind).toBe(RunKind.INSPECT);
    const revision = rig.lastRevision('hosts.h1');
    await again.report(proved(), first);
    expect(rig.lastRevision('hosts.h1')).toBe(revision);
    const verdicts = again.of('reportAnswer').map(({ verdict }) => verdict);
    expect(verdicts[0]).toBe(APPLIED);
    expect([DUPLICATE, STALE]).toContain(verdicts[1]);
  });

  test('no attempt fails because one call of the store was lost', async () => {
    let lost = 0;
    const { rig, replica, plain } = await started(({ kind, key }) => {
      const loses = kind === 'get' && key === 'hosts.h1' && lost > 0;
      if (loses) lost -= 1;
      return { kind: loses ? 'requestLost' : 'none' };
    });
    lost = 1;
    await plain.report(proved(), first);
    expect(plain.ended).toBe(true);
    expect(rig.status().lastError).toBeUndefined();
    const again = await connectAgent(rig, replica);
    await again.report(proved(), first);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });

  test('a result whose answer was lost is folded in once', async () => {
    let losing = false;
    const { rig, replica, plain } = await started(({ kind, key }) => ({
      kind: losing && kind === 'put' && key === 'hosts.h1' ? 'answerLost' : 'none',
    }));
    losing = true;
    await plain.report(proved(), first);
    losing = false;
    const again = plain.ended ? await connectAgent(rig, replica) : plain;
    await again.report(proved(), first);
    expect(rig.record().runCount).toBe(2n);
    expect(rig.status().state).toBe(HostState.MANAGEABLE);
  });

  test('a report that can never be applied waits for the store like the others', async () => {
    let reads = Infinity;
    const { rig, replica, plain } = await started(({ kind, key }) => {
      if (kind !== 'get' || key !== 'hosts.h1') return { kind: 'none' };
      reads -= 1;
      return { kind: reads < 0 ? 'requestLost' : 'none' };
    });
    const bmcIdentity = { guid: new Uint8Array(16).fill(1), serial: huge };
    reads = 1;
    await plain.report(complete({ bmcIdentity }), first);
    expect(plain.ended).toBe(true);
    reads = Infinity;
    const again = await connectAgent(rig, replica);
    await again.report(complete({ bmcIdentity }), first);
    expect(again.ended).toBe(false);
    expect(rig.status().run?.phase).toBe(RunPhase.ENDED);
  });
});

describe('while others change a record all the time', () => {
  /** The most conflicts that one change of a record may lose. */
  const roundsMax = 16;

  test.each<[string, (rig: Rig) => void]>([
    ['hosts.h1', (rig) => rig.put('hosts.h1', wire.HostRecordSchema, rig.record())],
    ['facts.h1', (rig) => rig.put('facts.h1', wire.HostFactsSchema, { hostUid: 'other' })],
  ])(
    'a report is not called applied while %s changes all the time, and comes again',
    async (contended, push) => {
      let rivals = 0;
      const { rig, replica, plain } = await started(({ kind, key }) => {
        if (rivals > 0 && kind === 'put' && key === contended) {
          rivals -= 1;
          push(rig);
        }
        return { kind: 'none' };
      });
      await plain.report(proved(), first);
      await orderedOf(rig, plain);
      const inspection = plain.last('u1');
      expect(inspection.kind.case).toBe('inspect');
      const answers = plain.of('reportAnswer').length;
      rivals = roundsMax;
      await plain.report(inspected([virtioDisk]), inspection);
      expect(plain.ended).toBe(true);
      expect(plain.of('reportAnswer')).toHaveLength(answers);
      expect(rig.record().operation?.operation?.id).toBe(inspection.id);
      expect(rig.status().lastError).toBeUndefined();
      expect(rivals).toBe(0);
      const operations = [{ operationId: inspection.id, hostUid: 'u1', state: ENDED }];
      const again = await connectAgent(rig, replica, { operations });
      await again.report(inspected([virtioDisk]), inspection);
      expect(again.of('reportAnswer').at(-1)).toMatchObject({ verdict: APPLIED });
      const facts = rig.read('facts.h1', wire.HostFactsSchema);
      expect(facts?.inventory?.devices.map(({ model }) => model)).toEqual([virtioDisk.model]);
    },
  );
});
