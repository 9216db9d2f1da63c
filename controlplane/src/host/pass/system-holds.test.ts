/** Kind and operation tell the holds of the system apart; their texts do not. */
import { create } from '@bufbuild/protobuf';
import {
  actors,
  agent,
  HoldKind,
  HoldSchema,
  HoldScope,
  type OperationId,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { bench } from '../testing/bench.ts';
import { runKind, statusOf } from '../testing/deleting.ts';

const first = 'u1/99/0/1';
const second = 'u1/98/0/1';

interface Stored {
  readonly kind?: HoldKind;
  readonly operationId?: OperationId;
  readonly reason: string;
  readonly since?: { readonly seconds: bigint };
}

/** A host that was stored with this hold of the system, and what its agent's Hello does to it. */
function storedWith(hold: Stored) {
  const host = bench();
  statusOf(host).holds.push(
    create(HoldSchema, { scope: HoldScope.WORK, by: actors.system, ...hold }),
  );
  const hello = (...operationIds: readonly OperationId[]) => {
    const { session } = host.snapshot;
    if (session === undefined) throw new Error('the agent is connected');
    const listed = operationIds.map((operationId) =>
      create(agent.JournalledOperationSchema, { operationId }),
    );
    host.apply({ kind: 'hello', journal: session.journal, listed });
    return statusOf(host).holds;
  };
  return { host, hello };
}

test('a hold for unknown work whose text was worded otherwise stays as it is', () => {
  const reason = 'unknownWork: in the words of another version';
  const since = { seconds: 1n };
  const hold = { kind: HoldKind.UNKNOWN_WORK, operationId: first, reason, since };
  const { host, hello } = storedWith(hold);
  expect(hello(first)).toMatchObject([hold]);
  expect(host.record.change?.cause ?? '').not.toContain('never ordered');
  expect(hello(first, second)).toMatchObject([hold, { operationId: second }]);
  expect(hello(second)).toMatchObject([{ operationId: second }]);
  expect(hello()).toEqual([]);
});

test('an operation that a Hello lists twice has one hold', () => {
  const { hello } = storedWith({ kind: HoldKind.UNKNOWN_WORK, reason: 'unknownWork: older' });
  expect(hello(first, first)).toMatchObject([{ operationId: first }]);
});

test('a hold for unknown work without its operation holds until the next Hello replaces it', () => {
  const reason = `unknownWork: the agent has ${first}`;
  const stored = { kind: HoldKind.UNKNOWN_WORK, reason };
  const { host, hello } = storedWith(stored);
  host.apply({ kind: 'tick' });
  expect(statusOf(host).holds).toMatchObject([stored]);
  expect(runKind(host)).toBeUndefined();
  expect(hello(first)).toMatchObject([{ ...stored, operationId: first }]);
  expect(runKind(host)).toBeUndefined();
  expect(storedWith(stored).hello()).toEqual([]);
});

test.each(['unknownWork: the agent has u1/99/0/1', 'restored: the store has lost 3 revisions'])(
  'only a person lifts a hold without a kind: %s',
  (reason) => {
    const { host, hello } = storedWith({ reason });
    expect(hello()).toMatchObject([{ reason }]);
    expect(hello(second)).toHaveLength(2);
    expect(hello()).toMatchObject([{ reason }]);
    expect(runKind(host)).toBeUndefined();
    host.request({ kind: 'releaseHold', hold: reason, reason: 'seen to' });
    expect(statusOf(host).holds).toEqual([]);
  },
);
