/** Cases about compare-and-set: S1, S2, and writes whose answer was lost. */
import assert from 'node:assert/strict';
import {
  asWriteId,
  findWrite,
  type GetResult,
  type StateStore,
  type WriteResult,
} from '../contract.ts';
import { bytes, type ConformanceCase, revisionOf, text, valueOf } from './subject.ts';

const oneWinner: ConformanceCase = {
  name: 'lets at most one of two writers win each race for a revision',
  async run(subject, limits) {
    let revision = revisionOf(await subject.first.put('races.one', bytes('start'), 'absent'));
    for (let round = 0; round < limits.racesMin; round += 1) {
      const key = 'races.one';
      const [left, right] = await Promise.all([
        settled(subject.first, key, `left ${round}`, revision),
        settled(subject.second, key, `right ${round}`, revision),
      ]);
      const winners = [left, right].filter((result) => result.kind === 'ok');
      assert.equal(winners.length, 1, `round ${round} has ${winners.length} winners`);
      revision = revisionOf(winners[0] as WriteResult);
      const winner = left.kind === 'ok' ? `left ${round}` : `right ${round}`;
      assert.equal(await valueOf(subject.second, key), winner);
    }
  },
};

const oneCreator: ConformanceCase = {
  name: 'lets at most one of two creators win, also after a delete',
  async run(subject, limits) {
    for (let round = 0; round < limits.racesMin / 10; round += 1) {
      const key = `races.create-${round % 5}`;
      const results = await Promise.all([
        settled(subject.first, key, 'left', 'absent'),
        settled(subject.second, key, 'right', 'absent'),
      ]);
      const winners = results.filter((result) => result.kind === 'ok');
      assert.equal(winners.length, 1, `round ${round} has ${winners.length} creators`);
      const revision = revisionOf(winners[0] as WriteResult);
      revisionOf(await subject.first.delete(key, revision));
    }
  },
};

const conflictSaysWhatIsStored: ConformanceCase = {
  name: 'answers a write with a stale revision by conflict and what stands there',
  async run({ first, second }) {
    const created = revisionOf(await first.put('hosts.a', bytes('one'), 'absent'));
    const updated = revisionOf(await second.put('hosts.a', bytes('two'), created));
    for (const stale of [created, 'absent', updated + 1000] as const) {
      const result = await first.put('hosts.a', bytes('three'), stale);
      assert.equal(result.kind, 'conflict', `expected ${stale}`);
      if (result.kind === 'conflict') assert.equal(foundText(result.current), 'two');
    }
    assert.equal((await first.delete('hosts.a', created)).kind, 'conflict');
    assert.equal((await first.put('hosts.b', bytes('x'), updated)).kind, 'conflict');
    assert.equal((await first.delete('hosts.b', updated)).kind, 'conflict');
    assert.equal(await valueOf(second, 'hosts.a'), 'two');
    assert.equal((await second.get('hosts.b')).kind, 'absent');
  },
};

const deleteAndRecreate: ConformanceCase = {
  name: 'deletes by revision, tells the delete’s revision, and lets the key be made again after it',
  async run({ first, second }) {
    const created = revisionOf(await first.put('hosts.a', bytes('one'), 'absent'));
    const deleted = revisionOf(await first.delete('hosts.a', created));
    assert.ok(deleted > created);
    const absent = await second.get('hosts.a');
    assert.equal(absent.kind, 'absent');
    assert.equal(absent.revision, deleted);
    assert.equal((await first.put('hosts.a', bytes('late'), created)).kind, 'conflict');
    const again = revisionOf(await second.put('hosts.a', bytes('two'), 'absent'));
    assert.ok(again > deleted);
    const gone = revisionOf(await second.delete('hosts.a', again));
    const exact = revisionOf(await first.put('hosts.a', bytes('three'), gone));
    assert.ok(exact > gone);
    assert.equal(await valueOf(second, 'hosts.a'), 'three');
  },
};

const repetitionIsOk: ConformanceCase = {
  name: 'answers the repetition of a write by its id with its revision, also when others followed',
  async run({ first, second }) {
    const created = await first.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
    const repeated = await second.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1'));
    assert.deepEqual(repeated, created);
    const revision = revisionOf(created);
    const updated = await first.put('hosts.a', bytes('two'), revision, asWriteId('write-2'));
    assert.deepEqual(
      await first.put('hosts.a', bytes('two'), revision, asWriteId('write-2')),
      updated,
    );
    const deleted = await first.delete('hosts.a', revisionOf(updated), asWriteId('write-3'));
    assert.deepEqual(
      await second.delete('hosts.a', revisionOf(updated), asWriteId('write-3')),
      deleted,
    );
    assert.deepEqual(
      await first.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1')),
      created,
    );
    assert.equal((await first.history('hosts.a')).length, 3);
    assert.equal((await second.get('hosts.a')).kind, 'absent');
  },
};

const tracesWrites: ConformanceCase = {
  name: 'finds a write by its id, as the last one and among earlier ones',
  async run({ first, second }) {
    const one = revisionOf(
      await first.put('hosts.a', bytes('one'), 'absent', asWriteId('write-1')),
    );
    assert.deepEqual(await findWrite(second, 'hosts.a', asWriteId('write-1')), {
      kind: 'landed',
      revision: one,
    });
    const two = revisionOf(await first.put('hosts.a', bytes('two'), one, asWriteId('write-2')));
    revisionOf(await first.delete('hosts.a', two, asWriteId('write-3')));
    const traced = await findWrite(second, 'hosts.a', asWriteId('write-1'));
    assert.deepEqual(traced, { kind: 'landed', revision: one });
    assert.equal((await findWrite(second, 'hosts.a', asWriteId('write-3'))).kind, 'landed');
    assert.equal((await findWrite(second, 'hosts.a', asWriteId('write-4'))).kind, 'notSeen');
    assert.equal((await findWrite(second, 'hosts.b', asWriteId('write-1'))).kind, 'notSeen');
  },
};

const manyAtOnce: ConformanceCase = {
  name: 'answers many writes made at once each by its own outcome',
  async run({ first, second }, limits) {
    const writes = Array.from({ length: limits.manyWrites }, (_, at) => {
      const store = at % 2 === 0 ? first : second;
      return store.put(`many.k${at % 50}`, bytes(`${at}`), 'absent', asWriteId(`write-${at}`));
    });
    const results = await Promise.all(writes);
    const revisions = new Set<number>();
    for (const result of results) if (result.kind === 'ok') revisions.add(result.revision);
    assert.equal(revisions.size, 50);
    for (const entry of (await first.list('many')).entries) {
      assert.ok(revisions.has(entry.revision), `revision ${entry.revision} was acknowledged`);
      assert.equal(entry.writeId, `write-${text(entry.value)}`);
    }
  },
};

/** One write, repeated under its id for as long as its outcome is unknown. */
async function settled(
  store: StateStore,
  key: string,
  value: string,
  expected: number | 'absent',
): Promise<WriteResult> {
  let result = await store.put(key, bytes(value), expected);
  for (let attempt = 0; attempt < 20 && result.kind === 'unknown'; attempt += 1) {
    result = await store.put(key, bytes(value), expected, result.writeId);
  }
  return result;
}

function foundText(current: GetResult | undefined): string | undefined {
  return current?.kind === 'found' ? text(current.value) : undefined;
}

export const writingCases: readonly ConformanceCase[] = [
  oneWinner,
  oneCreator,
  conflictSaysWhatIsStored,
  deleteAndRecreate,
  repetitionIsOk,
  tracesWrites,
  manyAtOnce,
];
