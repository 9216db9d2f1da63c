/** Cases about data that is kept by age: a key's past beyond its last changes, and the log (S8). */
import assert from 'node:assert/strict';
import { type Change, HISTORY_PER_KEY, type KeyHistory, type StateStore } from '../contract.ts';
import type { LogEntry } from '../entry-log.ts';
import {
  bytes,
  type ConformanceCase,
  line,
  revisionOf,
  type StoreUnderTest,
  type SuiteLimits,
  TESTED_PREFIX,
  text,
} from './subject.ts';

const CHANGES = HISTORY_PER_KEY + 26;

/** Writes the key often, deletes included; answers the lines of its changes, oldest first. */
async function written({ first, second }: StoreUnderTest, key: string): Promise<string[]> {
  const lines: string[] = [];
  let revision = 0;
  for (let round = 0; round < CHANGES; round += 1) {
    const store = round % 2 === 0 ? first : second;
    if (round % 10 === 9) {
      revision = revisionOf(await store.delete(key, revision));
      lines.push(`delete ${key} @${revision}`);
    } else {
      const expected = round % 10 === 0 ? 'absent' : revision;
      revision = revisionOf(await store.put(key, bytes(`${round}`), expected));
      lines.push(`put ${key} ${round} @${revision}`);
    }
  }
  return lines;
}

/** The whole past of a key in pages, oldest first, and the changes before it. */
async function wholePast(store: StateStore, key: string, pageSize: number) {
  const changes: Change[] = [];
  let page: KeyHistory = await store.historyBackwards(key, pageSize);
  for (;;) {
    assert.ok(page.changes.length <= pageSize, `a page has ${page.changes.length} changes`);
    changes.push(...page.changes);
    if (page.before.kind !== 'more') break;
    assert.ok(page.changes.length > 0, 'a page is empty and says that there is more');
    page = await store.historyBackwards(key, pageSize, page.before.from);
  }
  return { lines: changes.reverse().map(line), changes, before: page.before.kind };
}

/** Repeats a look until it succeeds; data that is kept elsewhere may come a moment later. */
async function eventually(
  subject: StoreUnderTest,
  limits: SuiteLimits,
  look: () => Promise<void>,
): Promise<void> {
  const rounds = 10;
  for (let round = 1; ; round += 1) {
    try {
      return await look();
    } catch (error) {
      if (round === rounds) throw error;
      await subject.wait(limits.patienceMs / rounds);
    }
  }
}

const keepsByAge: ConformanceCase = {
  name: 'keeps every change of a key that is kept by age, and tells them in pages without a hole',
  async run(subject, limits) {
    const key = `${TESTED_PREFIX}.a`;
    const lines = await written(subject, key);
    const others = await written(subject, 'hosts.a');
    const from = Date.now();
    for (const pageSize of [1 + CHANGES / 3, CHANGES, CHANGES + 1]) {
      await eventually(subject, limits, async () => {
        const past = await wholePast(subject.second, key, Math.floor(pageSize));
        assert.deepEqual(past.lines, lines);
        assert.equal(past.before, 'nothing');
        for (const [at, { atMs }] of past.changes.entries()) {
          assert.ok(atMs !== undefined && atMs > 0 && atMs <= from + 86_400_000, `change ${at}`);
        }
      });
    }
    const rest = await wholePast(subject.first, 'hosts.a', 50);
    assert.ok(rest.lines.length >= HISTORY_PER_KEY);
    assert.deepEqual(rest.lines, others.slice(-rest.lines.length));
    assert.equal(rest.before, rest.lines.length === CHANGES ? 'nothing' : 'gone');
    const never = { changes: [], before: { kind: 'nothing' } };
    assert.deepEqual(await subject.first.historyBackwards('hosts.never', 10), never);
  },
};

const lasts: ConformanceCase = {
  name: 'has the past of a key and the entries of the log after all processes were killed',
  async run(subject, limits) {
    const key = `${TESTED_PREFIX}.a`;
    const lines = await written(subject, key);
    for (let at = 0; at < 5; at += 1) await added(subject.first, `entry-${at}`);
    const hasAll = () =>
      eventually(subject, limits, async () => {
        assert.deepEqual((await wholePast(subject.second, key, 40)).lines, lines);
      });
    // A store may copy the past elsewhere a moment later. A crash before the copy may lose it.
    await hasAll();
    await subject.crash();
    await hasAll();
    assert.deepEqual(ids(await wholeLog(subject.first, 2)), [0, 1, 2, 3, 4].map(entryId));
    await added(subject.second, 'entry-5');
    assert.deepEqual(ids(await wholeLog(subject.first, 4)), [0, 1, 2, 3, 4, 5].map(entryId));
  },
};

const goesByAge: ConformanceCase = {
  name: 'lets go by age what is kept by age, and says so, but never the last 64 changes',
  growsOld: true,
  async run(subject, limits) {
    const key = `${TESTED_PREFIX}.a`;
    const lines = await written(subject, key);
    const quiet = revisionOf(await subject.first.put(`${TESTED_PREFIX}.q`, bytes('x'), 'absent'));
    for (let at = 0; at < 5; at += 1) await added(subject.first, `entry-${at}`);
    await subject.growOld();
    await eventually(subject, limits, async () => {
      const past = await wholePast(subject.second, key, 50);
      assert.deepEqual(past.lines, lines.slice(-HISTORY_PER_KEY));
      assert.equal(past.before, 'gone');
      assert.deepEqual(await wholeLog(subject.second, 10), [], 'entries outlive their age');
    });
    assert.equal((await subject.second.get(`${TESTED_PREFIX}.q`)).revision, quiet);
    const position = await added(subject.second, 'entry-5');
    assert.ok(position > 5, `position ${position} was given before`);
    assert.deepEqual(ids(await wholeLog(subject.first, 10)), ['entry-5']);
  },
};

const logInOrder: ConformanceCase = {
  name: 'adds to its log in one order, each entry once, and reads it backwards in pages',
  async run({ first, second }, limits) {
    const count = Math.min(limits.manyWrites, 120);
    const positions: number[] = [];
    for (let at = 0; at < count; at += 1) {
      positions.push(await added(at % 2 === 0 ? first : second, entryId(at)));
    }
    assert.deepEqual(
      positions,
      [...positions].sort((a, b) => a - b),
    );
    assert.equal(new Set(positions).size, count);
    assert.equal(await added(second, entryId(count - 1)), positions.at(-1), 'added twice');
    for (const pageSize of [1 + count / 4, count, count + 1]) {
      const entries = await wholeLog(second, Math.floor(pageSize));
      assert.deepEqual(
        ids(entries),
        positions.map((_, at) => entryId(at)),
      );
      assert.deepEqual(
        entries.map(({ position }) => position),
        positions,
      );
      for (const { id, value } of entries) assert.equal(text(value), `about ${id}`);
    }
    const many = Array.from({ length: 50 }, (_, at) => added(first, `many-${at}`));
    assert.equal(new Set(await Promise.all(many)).size, 50);
    assert.deepEqual((await second.list('')).entries, [], 'entries are no keys');
  },
};

function entryId(at: number): string {
  return `entry-${at}`;
}

function ids(entries: readonly LogEntry[]): string[] {
  return entries.map(({ id }) => id);
}

async function added(store: StateStore, id: string): Promise<number> {
  const result = await store.log.append(id, bytes(`about ${id}`));
  assert.equal(result.kind, 'ok', `expected ok, got ${JSON.stringify(result)}`);
  return result.kind === 'ok' ? result.position : 0;
}

/** All entries, oldest first, read in pages. */
async function wholeLog(store: StateStore, pageSize: number): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  for (;;) {
    const page = await store.log.back(pageSize, entries.at(-1)?.position);
    assert.ok(page.entries.length <= pageSize, `a page has ${page.entries.length} entries`);
    entries.push(...page.entries);
    if (!page.more) return entries.reverse();
    assert.ok(page.entries.length > 0, 'a page is empty and says that there is more');
  }
}

export const agingCases: readonly ConformanceCase[] = [keepsByAge, lasts, goesByAge, logInOrder];
