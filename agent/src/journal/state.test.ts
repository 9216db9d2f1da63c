/** The effect of each record on the state, and that a rewrite keeps all of it (J4). */
import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  agent,
  asIncarnation,
  asRevision,
  asRunNumber,
  type DeploymentId,
  deploymentIdOf,
  type HostUid,
  noDeployment,
  type OperationId,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import {
  applyRecords,
  emptyJournal,
  type JournalState,
  makeRecord,
  type RecordInit,
  recordsOf,
} from './state.ts';

const after = (...records: readonly RecordInit[]): JournalState =>
  applyRecords(
    emptyJournal,
    records.map((record) => makeRecord(5_000, record)),
  );
/** The same by the records of a rewrite. */
const rewritten = (state: JournalState) => applyRecords(emptyJournal, recordsOf(state));

const seen = (at: bigint, more: object = {}): RecordInit => ({
  case: 'storeSeen',
  value: { incarnation: asIncarnation('i1'), revision: asRevision(at), ...more },
});

test('the highest revision of one store counts, and another store has its own', () => {
  expect(after(seen(7n), seen(5n)).store).toMatchObject({ incarnation: 'i1', revision: 7n });
  expect(after(seen(5n), seen(7n)).store?.revision).toBe(7n);
  const other = after(seen(7n), seen(2n, { incarnation: asIncarnation('i2') })).store;
  expect(other).toMatchObject({ incarnation: 'i2', revision: 2n });
  expect(other).not.toHaveProperty('refusal');
});

test.each([
  ['a kind and a text', agent.StoreRefusalKind.BEHIND, 'it was restored'],
  ['a kind without a text', agent.StoreRefusalKind.OTHER_INCARNATION, ''],
  ['a kind that is not known here', 99, ''],
  ['the text of an older agent, without a kind', agent.StoreRefusalKind.UNSPECIFIED, 'it is'],
])('a store refused by %s stays refused until a person accepts one', (_what, kind, text) => {
  const refused = seen(7n, { refusal: kind, refused: text });
  const state = after(refused, seen(9n), seen(3n, { incarnation: asIncarnation('i2') }));
  expect(state.store).toMatchObject({ revision: 7n, refusal: { kind } });
  expect(rewritten(state).store).toEqual(state.store);
  const accepted = after(refused, seen(2n, { accepted: true, lostRevisions: 5n }));
  expect(accepted.store).toEqual({ incarnation: 'i1', revision: 2n, lostRevisions: 5n });
});

test('lost revisions only grow', () => {
  const lost = (count: bigint) => seen(1n, { accepted: true, lostRevisions: asRevision(count) });
  expect(after(lost(4n), lost(3n)).store?.lostRevisions).toBe(4n);
  expect(after(lost(4n), lost(6n)).store?.lostRevisions).toBe(6n);
  expect(after(lost(4n), seen(9n)).store?.lostRevisions).toBe(4n);
});

const deployment = (run: number) => deploymentIdOf('d', asRunNumber(run));
const proved = (hostUid: HostUid, deploymentId: DeploymentId): RecordInit => ({
  case: 'hostProved',
  value: { hostUid, deploymentId },
});

test('the last proof of a host counts, and none when the host is forgotten', () => {
  const state = after(
    proved('u1', deployment(1)),
    proved('u2', deployment(2)),
    proved('u1', deployment(3)),
  );
  const proofs = [...state.proved.values()].map((each) => each.deploymentId);
  expect(proofs).toEqual([deployment(2), deployment(3)]);
  expect([...rewritten(state).proved.keys()]).toEqual(['u2', 'u1']);
  expect(after(proved('u1', deployment(1)), proved('u1', noDeployment)).proved.size).toBe(0);
});

test('the oldest of 10,001 proofs goes', () => {
  const many = Array.from({ length: 10_000 }, (_, at) => [`u${at}`, deployment(at)] as const);
  const before: JournalState = {
    ...emptyJournal,
    proved: new Map(
      many.map(([hostUid, deploymentId]) => [
        hostUid,
        create(agent.HostProvedSchema, { hostUid, deploymentId }),
      ]),
    ),
  };
  const again = applyRecords(before, [makeRecord(1, proved('u0', deployment(10_000)))]);
  expect([again.proved.size, again.proved.has('u1')]).toEqual([10_000, true]);
  const more = applyRecords(before, [makeRecord(1, proved('more', deployment(0)))]);
  expect([more.proved.size, more.proved.has('u0'), more.proved.has('u1')]).toEqual([
    ...[10_000, false, true],
  ]);
});

const opened: RecordInit = { case: 'grantOpened', value: { operationId: 'o1', hostUid: 'u1' } };
const bound = (key: number): RecordInit => ({
  case: 'grantBound',
  value: { operationId: 'o1', publicKey: new Uint8Array([key]) },
});
const handedOff = (handOffOperationId: OperationId): RecordInit => ({
  case: 'grantHandedOff',
  value: { operationId: 'o1', handOffOperationId },
});

test('the first key owns a grant, and a boot ends once', () => {
  const state = after(opened, bound(1), bound(2), handedOff('s1'), handedOff('s2'));
  expect(state.grants.get('o1')?.publicKey).toEqual(new Uint8Array([1]));
  expect(state.grants.get('o1')?.handedOff).toMatchObject({ handOffOperationId: 's1' });
  expect(rewritten(state).grants).toEqual(state.grants);
});

test('a record about a grant that is not open changes nothing', () => {
  expect(after(bound(1), handedOff('s1')).grants.size).toBe(0);
  const closed: RecordInit = { case: 'grantClosed', value: { operationId: 'o1' } };
  expect(after(opened, closed, bound(1)).grants.size).toBe(0);
});

const operation = create(agent.OperationSchema, { id: 'h/1/1/1', hostUid: 'h' });
const received: RecordInit = { case: 'received', value: { operation } };
const begun: RecordInit = { case: 'begun', value: { operationId: operation.id } };
const answered: RecordInit = { case: 'answered', value: { operationId: operation.id } };
const ended = (sequence: bigint): RecordInit => ({
  case: 'ended',
  value: {
    report: { operationId: operation.id, sequence, result: { case: 'complete', value: {} } },
  },
});
const phaseOf = (state: JournalState) => state.operations.get(operation.id)?.phase;

test('an operation goes on only from the phase before, and ends once', () => {
  expect(phaseOf(after(begun))).toBeUndefined();
  expect(phaseOf(after(received, begun))).toBe('begun');
  expect(phaseOf(after(received, begun, received))).toBe('begun');
  expect(phaseOf(after(received, ended(1n), begun))).toBe('ended');
  const twice = after(received, ended(1n), ended(2n));
  expect(twice.operations.get(operation.id)).toMatchObject({ report: { sequence: 1n } });
  expect(twice.lastSequence).toBe(2n);
  expect(after(ended(3n)).lastSequence).toBe(3n);
  expect(after(received, ended(3n), ended(2n)).lastSequence).toBe(3n);
});

test('only what has ended is answered, and a rewrite keeps each phase', () => {
  const early = after(received, answered, ended(1n));
  expect(early.operations.get(operation.id)).toMatchObject({ answered: false });
  const late = after(received, ended(1n), answered);
  expect(late.operations.get(operation.id)).toMatchObject({ answered: true });
  for (const state of [after(received), after(received, begun), early, late]) {
    expect(rewritten(state).operations).toEqual(state.operations);
  }
  const forgotten: RecordInit = { case: 'forgotten', value: { operationId: operation.id } };
  expect(after(received, begun, forgotten).operations.size).toBe(0);
});

test('a record without an operation or a report, and of no kind, changes nothing', () => {
  const empty = applyRecords(emptyJournal, [
    makeRecord(0, { case: 'received', value: {} }),
    makeRecord(0, { case: 'ended', value: {} }),
    create(agent.JournalRecordSchema, { time: timestampFromMs(0) }),
    create(agent.JournalRecordSchema, {}),
  ]);
  expect(empty).toEqual(emptyJournal);
});
