/** Cases about watch (S6) and about data that outlives a crash (S3, S4). */
import assert from 'node:assert/strict';
import { HISTORY_PER_KEY, type StateStore } from '../contract.ts';
import {
  bytes,
  type ConformanceCase,
  eventsUntil,
  line,
  revisionOf,
  valueOf,
  withoutRepeats,
} from './subject.ts';

const everyChangeInOrder: ConformanceCase = {
  name: 'shows a watcher every change in order while two handles write',
  async run(subject, limits) {
    const { first, second } = subject;
    const start = await first.latestRevision();
    const events = second.watch(start, '');
    const written: string[] = [];
    const write = async (store: StateStore, who: string) => {
      let revision: number | 'absent' = 'absent';
      for (let round = 0; round < 40; round += 1) {
        const key = `hosts.${who}`;
        revision = revisionOf(await store.put(key, bytes(`${round}`), revision));
        written.push(`put ${key} ${round} @${revision}`);
      }
      revision = revisionOf(await store.delete(`hosts.${who}`, revision as number));
      written.push(`delete hosts.${who} @${revision}`);
      return revision;
    };
    const done = Promise.all([write(first, 'a'), write(second, 'b'), write(first, 'c')]);
    const last = done.then((revisions) => Math.max(...revisions));
    const early = withoutRepeats(await eventsUntil(events, start + 20, subject, limits));
    const all = await eventsUntil(second.watch(start, ''), await last, subject, limits);
    const expected = byRevision(written);
    assert.deepEqual(withoutRepeats(all).map(line), expected);
    assert.deepEqual(early.map(line), expected.slice(0, early.length));
    assert.ok(early.length >= 20);
  },
};

const presentIsReached: ConformanceCase = {
  name: 'answers a present revision that no write before is above, and a watch of all reaches it',
  async run(subject, limits) {
    const { first, second } = subject;
    const start = await first.latestRevision();
    const written = revisionOf(await first.put('hosts.a', bytes('one'), 'absent'));
    const present = await second.presentRevision();
    assert.ok(present >= written, `revision ${present} was present after ${written}`);
    const together = await Promise.all(Array.from({ length: 9 }, () => second.presentRevision()));
    assert.ok(Math.min(...together) >= present, `revision ${together} was present later`);
    const last = await first.presentRevision();
    const seen = await eventsUntil(second.watch(start, ''), last, subject, limits);
    assert.equal(seen.filter(({ kind }) => kind === 'compacted').length, 0);
    const keys = (await first.list('')).entries.map(({ key }) => key);
    assert.deepEqual(keys, ['hosts.a'], 'the question is no value');
    const below = second.watch(start, 'hosts');
    const next = revisionOf(await first.put('hosts.a', bytes('two'), written));
    assert.ok(next > written && next >= last, `revision ${next} came after ${last}`);
    const hosts = withoutRepeats(await eventsUntil(below, next, subject, limits)).map(line);
    assert.deepEqual(hosts, [`put hosts.a one @${written}`, `put hosts.a two @${next}`]);
  },
};

const liveWatch: ConformanceCase = {
  name: 'shows changes to a watcher that is already waiting, under its prefix only',
  async run(subject, limits) {
    const { first, second } = subject;
    const { before } = await second.list('hosts.a');
    const watching = (async () => {
      const seen = await eventsUntil(second.watch(before, 'hosts.a'), before + 26, subject, limits);
      return withoutRepeats(seen).map(line);
    })();
    watching.catch(() => {}); // reported below, once all is written
    await subject.wait(20);
    const written: string[] = [];
    let revision: number | 'absent' = 'absent';
    for (let round = 0; round < 14; round += 1) {
      revision = revisionOf(await first.put('hosts.a', bytes(`${round}`), revision));
      written.push(`put hosts.a ${round} @${revision}`);
      await first.put(`hosts.ab${round}`, bytes('other'), 'absent');
      if (round % 4 === 0) await subject.wait(5);
    }
    assert.deepEqual(await watching, written);
  },
};

const listThenWatch: ConformanceCase = {
  name: 'misses nothing when a listing is followed by a watch from its revision',
  async run(subject, limits) {
    const { first, second } = subject;
    const filling = (async () => {
      let last = 0;
      for (let at = 0; at < 80; at += 1) {
        last = revisionOf(await first.put(`hosts.h${at}`, bytes(`${at}`), 'absent'));
      }
      return last;
    })();
    const { entries, before } = await second.list('hosts');
    const known = new Set(entries.map((entry) => entry.key));
    const last = await filling;
    if (before < last) {
      const seen = await eventsUntil(second.watch(before, 'hosts'), last, subject, limits);
      for (const event of seen) if (event.kind === 'put') known.add(event.key);
    }
    assert.equal(known.size, 80);
  },
};

const watchFromThePast: ConformanceCase = {
  name: 'shows from a past revision every change after it, values and deletes as they were',
  async run(subject, limits) {
    const { first, second } = subject;
    const written: { revision: number; line: string }[] = [];
    let last = 0;
    for (let at = 0; at < 30; at += 1) {
      const key = `hosts.h${at % 4}`;
      const now = await first.get(key);
      const expected = now.kind === 'found' ? now.revision : 'absent';
      if (at % 7 === 6 && expected !== 'absent') {
        last = revisionOf(await first.delete(key, expected));
        written.push({ revision: last, line: `delete ${key} @${last}` });
      } else {
        last = revisionOf(await first.put(key, bytes(`${at}`), expected));
        written.push({ revision: last, line: `put ${key} ${at} @${last}` });
      }
    }
    for (const { revision } of written.slice(0, -1).filter((_, at) => at % 5 === 0)) {
      const seen = await eventsUntil(second.watch(revision, ''), last, subject, limits);
      const expected = written.filter((each) => each.revision > revision);
      assert.deepEqual(
        withoutRepeats(seen).map(line),
        expected.map((each) => each.line),
      );
    }
  },
};

const compaction: ConformanceCase = {
  name: 'ends a watch with compacted when changes after its start are gone',
  async run(subject, limits) {
    const { first, second } = subject;
    const start = revisionOf(await first.put('hosts.quiet', bytes('x'), 'absent'));
    let revision = revisionOf(await first.put('hosts.a', bytes('0'), 'absent'));
    const changes = HISTORY_PER_KEY * 3;
    for (let round = 1; round < changes; round += 1) {
      revision = revisionOf(await first.put('hosts.a', bytes(`${round}`), revision));
    }
    const seen = await eventsUntil(second.watch(start, ''), revision, subject, limits);
    const last = seen.at(-1);
    if (last?.kind === 'compacted') assert.equal(last.reason, 'trimmed');
    else assert.equal(withoutRepeats(seen).length, changes, 'neither complete nor compacted');
    const recent = await eventsUntil(second.watch(revision - 1, ''), revision, subject, limits);
    assert.deepEqual(recent.map(line), [`put hosts.a ${changes - 1} @${revision}`]);
    const future = second.watch(revision + 100, '');
    const ended = await eventsUntil(future, revision + 101, subject, limits);
    assert.deepEqual(ended.map(line), ['compacted fromTheFuture']);
  },
};

const watchIsLeft: ConformanceCase = {
  name: 'ends a watch normally when it is aborted or left',
  async run(subject, limits) {
    const { first } = subject;
    const abort = new AbortController();
    const watching = eventsUntil(first.watch(0, '', abort.signal), 1000, subject, limits);
    revisionOf(await first.put('hosts.a', bytes('one'), 'absent'));
    await subject.wait(20);
    abort.abort();
    for (const event of await watching) assert.equal(event.kind, 'put');
    assert.deepEqual(await eventsUntil(first.watch(0, '', abort.signal), 1, subject, limits), []);
  },
};

const survivesKill: ConformanceCase = {
  name: 'has every acknowledged write after all processes were killed',
  async run(subject, limits) {
    const rounds = 60;
    const revisions = new Map<string, number>();
    for (let at = 0; at < rounds; at += 1) {
      const key = `hosts.h${at % 20}`;
      const expected = revisions.get(key) ?? 'absent';
      revisions.set(key, revisionOf(await subject.first.put(key, bytes(`${at}`), expected)));
    }
    const gone = revisions.get('hosts.h0') ?? 0;
    const last = revisionOf(await subject.first.delete('hosts.h0', gone));
    await subject.crash();
    assert.equal((await subject.first.get('hosts.h0')).kind, 'absent');
    for (let at = rounds - 19; at < rounds; at += 1) {
      assert.equal(await valueOf(subject.second, `hosts.h${at % 20}`), `${at}`);
    }
    const seen = await eventsUntil(subject.second.watch(0, ''), last, subject, limits);
    assert.equal(withoutRepeats(seen).length, rounds + 1);
  },
};

const growingRevisions: ConformanceCase = {
  name: 'never takes a revision back: through deletes, other keys, and a kill',
  async run(subject, _limits) {
    const incarnation = subject.first.incarnation;
    assert.match(incarnation, /^[0-9a-f]{32}$/);
    assert.equal(subject.second.incarnation, incarnation);
    let highest = 0;
    const grow = (revision: number) => {
      assert.ok(revision > highest, `revision ${revision} came after ${highest}`);
      highest = revision;
    };
    const round = async (name: string) => {
      for (const key of [`hosts.${name}`, `racks.${name}`]) {
        const created = revisionOf(await subject.first.put(key, bytes(name), 'absent'));
        grow(created);
        const updated = revisionOf(await subject.second.put(key, bytes('again'), created));
        grow(updated);
        grow(revisionOf(await subject.first.delete(key, updated)));
        grow(revisionOf(await subject.second.put(key, bytes('anew'), 'absent')));
      }
    };
    await round('a');
    await subject.crash();
    assert.equal(subject.first.incarnation, incarnation, 'a kill is not a new incarnation');
    const latest = await subject.first.latestRevision();
    assert.ok(latest >= highest, `revision ${latest} came after ${highest}`);
    await round('b');
  },
};

function byRevision(lines: readonly string[]): string[] {
  const revision = (each: string) => Number(each.slice(each.lastIndexOf('@') + 1));
  return [...lines].sort((left, right) => revision(left) - revision(right));
}

export const watchingCases: readonly ConformanceCase[] = [
  everyChangeInOrder,
  presentIsReached,
  liveWatch,
  listThenWatch,
  watchFromThePast,
  compaction,
  watchIsLeft,
];

const newIncarnation: ConformanceCase = {
  name: 'is a new incarnation once it is opened as restored, with its values, and stays it',
  async run(subject, _limits) {
    const before = subject.first.incarnation;
    const written = revisionOf(await subject.first.put('hosts.a', bytes('kept'), 'absent'));
    await subject.restore();
    const { incarnation } = subject.first;
    assert.match(incarnation, /^[0-9a-f]{32}$/);
    assert.notEqual(incarnation, before, 'a restored store keeps its old incarnation');
    assert.equal(subject.second.incarnation, incarnation);
    assert.equal(await valueOf(subject.second, 'hosts.a'), 'kept');
    const next = revisionOf(await subject.second.put('hosts.a', bytes('anew'), written));
    assert.ok(next > written, `revision ${next} came after ${written}`);
    await subject.crash();
    assert.equal(subject.first.incarnation, incarnation, 'the new incarnation lasts');
  },
};

export const lastingCases: readonly ConformanceCase[] = [
  survivesKill,
  growingRevisions,
  newIncarnation,
];
