/** Cases about listings in pages: nothing left out, nothing twice, nothing lost behind them. */
import assert from 'node:assert/strict';
import { type Entry, LIST_PAGE_MAX, type Listing, type StateStore } from '../contract.ts';
import { StoreError } from '../errors.ts';
import { bytes, type ConformanceCase, eventsUntil, revisionOf, text } from './subject.ts';

/** Keys of which some are below others, some were deleted, and some are beside the prefix. */
async function fill(store: StateStore): Promise<void> {
  const ids = Array.from({ length: 60 }, (_, at) => `h${(at * 37) % 100}`);
  const keys = ids.flatMap((id) => [`hosts.${id}`, `hosts.${id}.runs.1`, `hosts.${id}-b`]);
  for (const key of ['hosts', ...keys, 'hostsx.a', 'racks.a']) {
    revisionOf(await store.put(key, bytes(key), 'absent'));
  }
  for (const id of ids.filter((_, at) => at % 3 === 0)) {
    const { revision = 0 } = await store.get(`hosts.${id}`);
    revisionOf(await store.delete(`hosts.${id}`, revision));
  }
}

/** All pages of a prefix, each begun behind the last key of the one before. */
async function pagesOf(store: StateStore, prefix: string, limit: number): Promise<Listing[]> {
  const pages: Listing[] = [];
  for (let after = ''; ; ) {
    const page = await store.list(prefix, after === '' ? { limit } : { after, limit });
    pages.push(page);
    after = page.entries.at(-1)?.key ?? '';
    if (page.entries.length < limit) return pages;
    assert.ok(pages.length < 1_000, 'the pages do not end');
  }
}

const keysOf = (entries: readonly Entry[]) => entries.map(({ key }) => key);

const leavesNothingOut: ConformanceCase = {
  name: 'lists in pages every live key of a prefix, whatever their size',
  async run({ first, second }) {
    await fill(first);
    for (const prefix of ['hosts', 'hosts.h1', '', 'nothing']) {
      const all = keysOf((await second.list(prefix)).entries);
      for (const limit of [1, 7, LIST_PAGE_MAX]) {
        const pages = await pagesOf(second, prefix, limit);
        const paged = new Set(pages.flatMap(({ entries }) => keysOf(entries)));
        const left = all.filter((key) => !paged.has(key));
        assert.deepEqual(left, [], `pages of ${limit} leave out keys under "${prefix}"`);
      }
    }
  },
};

const repeatsNothing: ConformanceCase = {
  name: 'lists in pages no key twice, in the order of keys, and no more than is asked for',
  async run({ first, second }) {
    await fill(first);
    const all = keysOf((await first.list('hosts')).entries);
    for (const limit of [1, 10, all.length]) {
      const page = await second.list('hosts', { limit });
      assert.deepEqual(keysOf(page.entries), all.slice(0, limit), `the first ${limit}`);
    }
    // Also behind keys that are none, or are none any more.
    for (const after of [...all.slice(0, 12), 'hosts.h0', 'hosts.gone', 'a', 'hosts.zz', 'z']) {
      const { entries } = await second.list('hosts', { after, limit: 5 });
      const wanted = all.filter((key) => key > after).slice(0, 5);
      assert.deepEqual(keysOf(entries), wanted, `behind ${after}`);
    }
  },
};

const followsOn: ConformanceCase = {
  name: 'misses nothing when pages are followed by a watch from the first one’s revision',
  async run(subject, limits) {
    const { first, second } = subject;
    for (let at = 10; at < 30; at += 1) await first.put(`hosts.h${at}`, bytes('1'), 'absent');
    const known = new Map<string, string>();
    let before: number | undefined;
    let last = 0;
    for (let after = '', round = 0; ; round += 1) {
      const page = await second.list('hosts', after === '' ? { limit: 6 } : { after, limit: 6 });
      before ??= page.before;
      for (const { key, value } of page.entries) known.set(key, text(value));
      // Written where the pages have been, at once and with nothing after it.
      const { revision = 0 } = await first.get(`hosts.h1${round}`);
      last = revisionOf(await first.put(`hosts.h1${round}`, bytes('2'), revision));
      last = revisionOf(await first.put(`hosts.a${round}`, bytes('new'), 'absent'));
      after = page.entries.at(-1)?.key ?? '';
      if (page.entries.length < 6) break;
    }
    for (const event of await eventsUntil(second.watch(before, 'hosts'), last, subject, limits)) {
      if (event.kind === 'put') known.set(event.key, text(event.value));
    }
    const now = (await first.list('hosts')).entries;
    const missed = now.filter(({ key, value }) => known.get(key) !== text(value));
    assert.deepEqual(keysOf(missed), [], 'neither a page nor the watch showed it');
  },
};

const isAsOfItsRevision: ConformanceCase = {
  name: 'answers no page with values older than the revision that it names',
  async run({ first, second }) {
    let revision = revisionOf(await first.put('hosts.a', bytes('0'), 'absent'));
    await first.put('hosts.b', bytes('0'), 'absent');
    for (let round = 1; round < 10; round += 1) {
      revision = revisionOf(await first.put('hosts.a', bytes(`${round}`), revision));
      const { entries, before } = await second.list('hosts', { limit: 1 });
      assert.equal(text(entries[0]?.value ?? bytes('')), `${round}`, 'an older value');
      assert.ok(before >= revision, 'the page is from before an acknowledged write');
      assert.equal((await second.list('hosts', { limit: 2 })).entries[0]?.revision, revision);
    }
  },
};

const isComplete: ConformanceCase = {
  name: 'has on a page every key that was made before, and none that was deleted before',
  async run({ first, second }) {
    const live = new Map<string, number>();
    // An index begins at the first question.
    await second.list('hosts', { limit: 10 });
    for (let round = 0; round < 12; round += 1) {
      const key = `hosts.${(round * 7) % 12}`;
      live.set(key, revisionOf(await first.put(key, bytes(key), 'absent')));
      const [gone, revision] = [...live][0] ?? ['', 0];
      if (round % 3 === 2) {
        await first.delete(gone, revision);
        live.delete(gone);
      }
      const listed = keysOf((await second.list('hosts', { limit: 50 })).entries);
      const wanted = [...live.keys()].sort();
      const lacks = wanted.filter((each) => !listed.includes(each));
      assert.deepEqual(lacks, [], 'a page lacks keys that were acknowledged before');
      assert.deepEqual(listed, wanted, 'a page has keys that were deleted before');
    }
  },
};

const refusesOthers: ConformanceCase = {
  name: 'refuses pages out of bounds by name',
  async run({ first }) {
    const refused = (code: string, page: { after?: string; limit: number }) =>
      assert.rejects(
        async () => first.list('hosts', page),
        (error) => error instanceof StoreError && error.code === code,
        `${JSON.stringify(page)} should be refused as ${code}`,
      );
    for (const limit of [0, -1, 1.5, Number.NaN, LIST_PAGE_MAX + 1]) {
      await refused('invalidRevision', { limit });
    }
    for (const after of ['a.', 'a/b', 'ä']) await refused('invalidKey', { after, limit: 1 });
  },
};

export const pagingCases: readonly ConformanceCase[] = [
  leavesNothingOut,
  repeatsNothing,
  followsOn,
  isAsOfItsRevision,
  isComplete,
  refusesOthers,
];
