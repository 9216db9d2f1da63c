/** Cases about get, list and history, and about refusals: S5, S7, limits. */
import assert from 'node:assert/strict';
import { asWriteId, HISTORY_PER_KEY, VALUE_BYTES_MAX } from '../contract.ts';
import { StoreError, type StoreErrorCode } from '../errors.ts';
import { KEY_LENGTH_MAX } from '../key.ts';
import { bytes, type ConformanceCase, line, revisionOf, text, valueOf } from './subject.ts';

const freshGet: ConformanceCase = {
  name: 'never answers a get with less than was acknowledged before it, unless it says so',
  async run({ first, second }) {
    let revision = 0;
    let aged = 0;
    for (let round = 0; round < 60; round += 1) {
      const [writer, reader] = round % 2 === 0 ? [first, second] : [second, first];
      const expected = revision === 0 ? 'absent' : revision;
      revision = revisionOf(await writer.put('hosts.a', bytes(`${round}`), expected));
      for (const store of [reader, writer]) {
        const answer = await store.get('hosts.a');
        if (answer.asOf !== undefined && answer.asOf < revision) {
          aged += 1;
          continue;
        }
        assert.equal(answer.revision, revision, `round ${round} read an older value`);
        assert.equal(answer.kind === 'found' && text(answer.value), `${round}`);
      }
      const listed = (await reader.list('hosts')).entries.map((entry) => entry.revision);
      assert.deepEqual(listed, [revision], `round ${round} listed an older value`);
    }
    assert.ok(aged < 6, `${aged} reads of a healthy store were old`);
    revision = revisionOf(await first.delete('hosts.a', revision));
    for (const store of [first, second]) {
      const answer = await store.get('hosts.a');
      assert.ok(answer.kind === 'absent' || (answer.asOf ?? revision) < revision);
    }
  },
};

const sharing: ConformanceCase = {
  name: 'says whether several may hold it at once',
  async run({ first, second }) {
    assert.equal(first.isShared, first !== second);
  },
};

const wholeSegments: ConformanceCase = {
  name: 'lists by whole segments, in order, without what was deleted',
  async run({ first, second }) {
    const keys = ['hosts.ab', 'hosts.a.workflows.x', 'hosts.a', 'hosts.a-b', 'hostsx.a', 'racks.a'];
    for (const key of keys) revisionOf(await first.put(key, bytes(key), 'absent'));
    const gone = revisionOf(await first.put('hosts.gone', bytes('x'), 'absent'));
    const last = revisionOf(await first.delete('hosts.gone', gone));
    const listed = async (prefix: string) =>
      (await second.list(prefix)).entries.map((entry) => entry.key);
    assert.deepEqual(await listed('hosts.a'), ['hosts.a', 'hosts.a.workflows.x']);
    assert.deepEqual(await listed('hosts'), [
      'hosts.a',
      'hosts.a-b',
      'hosts.a.workflows.x',
      'hosts.ab',
    ]);
    assert.deepEqual(await listed(''), [...keys].sort());
    assert.deepEqual(await listed('nothing'), []);
    const { before, entries } = await second.list('hosts.ab');
    assert.ok(before >= last, 'the listing is from after the last write');
    assert.equal(text(entries[0]?.value ?? bytes('')), 'hosts.ab');
    assert.equal(await second.latestRevision(), before);
  },
};

const keepsHistory: ConformanceCase = {
  name: 'keeps at least the last 64 changes of a key, oldest first, deletes included',
  async run({ first, second }) {
    const expected: string[] = [];
    let revision = 0;
    for (let round = 0; round < HISTORY_PER_KEY + 20; round += 1) {
      await first.put(`noise.n${round % 3}`, bytes('noise'), 'absent');
      if (round % 10 === 9) {
        revision = revisionOf(await first.delete('hosts.a', revision));
        expected.push(`delete hosts.a @${revision}`);
      } else {
        const previous = round === 0 || round % 10 === 0 ? 'absent' : revision;
        revision = revisionOf(await first.put('hosts.a', bytes(`${round}`), previous));
        expected.push(`put hosts.a ${round} @${revision}`);
      }
    }
    const lines = (await second.history('hosts.a')).map(line);
    assert.ok(lines.length >= HISTORY_PER_KEY, `only ${lines.length} changes are kept`);
    assert.deepEqual(lines, expected.slice(-lines.length));
    assert.deepEqual(await second.history('hosts.b'), []);
  },
};

const keepsLiveValues: ConformanceCase = {
  name: 'keeps a live value however many writes follow it and however large they are',
  async run(subject, limits) {
    const { first } = subject;
    const old = revisionOf(await first.put('hosts.old', bytes('old'), 'absent'));
    let revision: number | 'absent' = 'absent';
    for (let round = 0; round < limits.manyWrites / 4; round += 1) {
      revision = revisionOf(await first.put('noise.same', bytes(`${round}`), revision));
    }
    const large = new Uint8Array(VALUE_BYTES_MAX / 4);
    for (let from = 0; from < limits.manyWrites; from += 50) {
      const fill = Array.from({ length: 50 }, (_, at) =>
        first.put(`noise.n${from + at}`, large, 'absent'),
      );
      for (const result of await Promise.all(fill)) revisionOf(result);
    }
    await subject.wait(50);
    assert.equal(await valueOf(subject.second, 'hosts.old'), 'old');
    assert.equal((await subject.second.get('hosts.old')).revision, old);
    const listed = (await subject.second.list('hosts')).entries.map((entry) => entry.key);
    assert.deepEqual(listed, ['hosts.old']);
  },
};

const exactBytes: ConformanceCase = {
  name: 'keeps values byte for byte, from nothing to the largest, apart from the caller’s buffer',
  async run({ first, second }) {
    const every = Uint8Array.from({ length: 256 }, (_, at) => at);
    const largest = new Uint8Array(VALUE_BYTES_MAX).map((_, at) => at % 251);
    const longKey = `hosts.${'a'.repeat(KEY_LENGTH_MAX - 6)}`;
    const values = { 'hosts.empty': new Uint8Array(0), 'hosts.every': every, [longKey]: largest };
    for (const [key, value] of Object.entries(values)) {
      const copy = Uint8Array.from(value);
      const write = first.put(key, copy, 'absent');
      copy.fill(0xee);
      revisionOf(await write);
      const answer = await second.get(key);
      assert.ok(
        answer.kind === 'found' && Buffer.from(answer.value).equals(value),
        key.slice(0, 20),
      );
    }
    assert.equal((await first.get('hosts.never')).kind, 'absent');
  },
};

const refusals: ConformanceCase = {
  name: 'refuses keys, prefixes, revisions, write ids and values out of bounds by name',
  async run({ first }) {
    const value = bytes('x');
    const badKeys = ['', '.', 'a.', '.a', 'a..b', 'a/b', 'a b', 'ä', 'a.*', 'a.>', '_store.x'];
    for (const key of [...badKeys, 'k'.repeat(KEY_LENGTH_MAX + 1)]) {
      await refused('invalidKey', () => first.put(key, value, 'absent'));
      await refused('invalidKey', () => first.get(key));
      await refused('invalidKey', () => first.delete(key, 1));
      await refused('invalidKey', () => first.history(key));
    }
    for (const prefix of ['.', 'a.', 'a/b', 'a.*']) {
      await refused('invalidPrefix', () => first.list(prefix));
      await refused('invalidPrefix', () => first.watch(0, prefix));
    }
    const over = new Uint8Array(VALUE_BYTES_MAX + 1);
    await refused('valueTooLarge', () => first.put('hosts.a', over, 'absent'));
    await refused('invalidRevision', () => first.put('hosts.a', value, 0));
    await refused('invalidRevision', () => first.put('hosts.a', value, 1.5));
    await refused('invalidRevision', () => first.delete('hosts.a', Number.NaN));
    await refused('invalidRevision', () => first.watch(-1, ''));
    for (const writeId of ['', 'a b', 'w'.repeat(65)]) {
      await refused('invalidWriteId', () =>
        first.put('hosts.a', value, 'absent', asWriteId(writeId)),
      );
    }
    assert.deepEqual((await first.list('')).entries, []);
  },
};

async function refused(code: StoreErrorCode, call: () => unknown): Promise<void> {
  await assert.rejects(
    async () => call(),
    (error) => error instanceof StoreError && error.code === code,
    `should be refused as ${code}`,
  );
}

const closing: ConformanceCase = {
  name: 'answers writes accepted before close, then refuses every call and ends watches',
  async run(subject) {
    const { first } = subject;
    const watching = (async () => {
      for await (const _ of first.watch(0, '')) continue;
    })();
    const write = first.put('hosts.a', bytes('one'), 'absent');
    await write;
    await first.close();
    await watching;
    await refused('closed', () => first.get('hosts.a'));
    await refused('closed', () => first.put('hosts.a', bytes('two'), 1));
    await refused('closed', () => first.delete('hosts.a', 1));
    await refused('closed', () => first.list(''));
    await refused('closed', () => first.history('hosts.a'));
    await refused('closed', () => first.watch(0, ''));
    await refused('closed', () => first.latestRevision());
    await refused('closed', () => first.presentRevision());
    await first.close();
  },
};

export const readingCases: readonly ConformanceCase[] = [
  sharing,
  freshGet,
  wholeSegments,
  keepsHistory,
  keepsLiveValues,
  exactBytes,
  refusals,
  closing,
];
