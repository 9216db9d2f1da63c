import { create } from '@bufbuild/protobuf';
import { agent, HoldScope, RunKind } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { explainHost } from '../explain/explain.ts';
import { type Bench, bench } from '../testing/bench.ts';
import { refusalOf, runKind, statusOf } from '../testing/deleting.ts';

test('a fence holds the host until it is lifted, or a person says it is disconnected', () => {
  const host = bench();
  const update = { kind: 'update', spec: host.record.host?.spec, labels: {} };
  host.snapshot = { ...host.snapshot, fencesPending: new Set(['u0']) };
  host.request({ ...update, fences: ['u0'] } as Parameters<Bench['request']>[0]);
  expect(runKind(host)).toBeUndefined();
  expect(statusOf(host).holds).toEqual([
    expect.objectContaining({ by: 'system', reason: expect.stringContaining('fencePending') }),
  ]);
  const plain = { kind: 'releaseHold', hold: '', reason: 'in a hurry' } as const;
  expect(refusalOf(host, plain)).toContain('physically_disconnected');
  const before = host.record;
  host.request({ ...plain, hold: 'fencePending', physicallyDisconnected: true });
  expect(statusOf(host).holds).toEqual([]);
  expect(host.record.change?.cause).toContain('physically disconnected');
  expect(runKind(host)).toBe(RunKind.VERIFY);

  host.record = before;
  host.snapshot = { ...host.snapshot, fencesPending: new Set() };
  host.apply({ kind: 'tick' });
  expect(host.record.fences).toEqual([]);
  expect(statusOf(host).holds).toEqual([]);
  expect(runKind(host)).toBe(RunKind.VERIFY);
  expect(refusalOf(host, { ...plain, physicallyDisconnected: true })).toContain('fencePending');
});

test('explain says what a fence waits for', () => {
  const host = bench();
  host.snapshot = { ...host.snapshot, fencesPending: new Set(['u0']) };
  const update = { kind: 'update', spec: host.record.host?.spec, labels: {}, fences: ['u0'] };
  host.request(update as Parameters<Bench['request']>[0]);
  const told = explainHost(host.record, { ...host.snapshot, nowMs: host.nowMs });
  expect(told.blocker).toBe('the agent of the host that was removed by force');
  expect(told.causes[0]?.text).toContain('abandonedResources/u0');
  expect(told.unblock).toEqual([
    expect.stringContaining('rackwright abandoned get u0'),
    expect.stringContaining('--hold fencePending --physically-disconnected'),
  ]);
});

test("a person's hold with the very words of a fence leaves the fence standing", () => {
  const host = bench();
  const update = { kind: 'update', spec: host.record.host?.spec, labels: {}, fences: ['u0'] };
  host.snapshot = { ...host.snapshot, fencesPending: new Set(['u0']) };
  host.request(update as Parameters<Bench['request']>[0]);
  const reason = statusOf(host).holds[0]?.reason ?? '';
  host.request({ kind: 'hold', scope: HoldScope.WORK, reason, untilMs: undefined });
  expect(statusOf(host).holds.map(({ by }) => by)).toEqual(['system', 'user:test']);
  const lifting = { kind: 'releaseHold', hold: reason, reason: 'in a hurry' } as const;
  expect(refusalOf(host, lifting)).toContain('physically_disconnected');
});

test("a person's hold that speaks of unknown work outlives a Hello without any", () => {
  const host = bench();
  const hello = (listed: agent.JournalledOperation[]) => {
    const { session } = host.snapshot;
    if (session !== undefined) host.apply({ kind: 'hello', journal: session.journal, listed });
  };
  const operationId = 'u1/99/0/1';
  const listed = [create(agent.JournalledOperationSchema, { operationId })];
  hello(listed);
  const [ours] = statusOf(host).holds;
  const { reason = '' } = ours ?? {};
  expect(ours).toMatchObject({ by: 'system', reason: expect.stringContaining(operationId) });
  expect(host.record.change?.cause).toContain('works on what was never ordered from here');
  const told = host.record.change;
  hello(listed);
  // A known fact changes nothing.
  expect(host.record.change).toEqual(told);
  host.request({ kind: 'hold', scope: HoldScope.WORK, reason, untilMs: undefined });
  hello(listed);
  expect(statusOf(host).holds.map(({ by }) => by)).toEqual(['system', 'user:test']);
  hello([]);
  expect(statusOf(host).holds).toMatchObject([{ by: 'user:test', reason }]);
});
