import { errorText } from '@rackwright/platform';
import { expect, test } from 'vitest';
import { memoryUnderTest } from '../memory/subject.ts';
import { brokenStores } from './broken/index.ts';
import type { BrokenStore } from './broken/wrap.ts';
import { USUAL_LIMITS } from './subject.ts';
import { conformanceCases, runCase } from './suite.ts';

/** Broken stores answer at once or never; the same calls each time fail the same cases. */
const LIMITS = { ...USUAL_LIMITS, patienceMs: 2_000, seed: 1 };

async function failures(makeSubject: BrokenStore['makeSubject']): Promise<Map<string, string>> {
  const failed = new Map<string, string>();
  for (const each of conformanceCases) {
    try {
      await runCase(each, makeSubject, LIMITS);
    } catch (error) {
      failed.set(each.name, errorText(error));
    }
  }
  return failed;
}

/** Every case that fails on each broken store, so that no case stops detecting it unnoticed. */
const EXPECTED: Readonly<Record<string, readonly string[]>> = {
  'two winners': [
    'lets at most one of two writers win each race for a revision',
    'lets at most one of two creators win, also after a delete',
    'answers many writes made at once each by its own outcome',
  ],
  'key skipped between pages': [
    'lists in pages every live key of a prefix, whatever their size',
    'lists in pages no key twice, in the order of keys, and no more than is asked for',
    'misses nothing when pages are followed by a watch from the first one’s revision',
  ],
  'key repeated between pages': [
    'lists in pages every live key of a prefix, whatever their size',
    'lists in pages no key twice, in the order of keys, and no more than is asked for',
  ],
  'gap behind a page': [
    'misses nothing when pages are followed by a watch from the first one’s revision',
  ],
  'stale page': ['answers no page with values older than the revision that it names'],
  'index of keys behind': [
    'lists in pages every live key of a prefix, whatever their size',
    'lists in pages no key twice, in the order of keys, and no more than is asked for',
    'misses nothing when pages are followed by a watch from the first one’s revision',
    'answers no page with values older than the revision that it names',
    'has on a page every key that was made before, and none that was deleted before',
  ],
  'stale get': ['never answers a get with less than was acknowledged before it, unless it says so'],
  'lost watch event': [
    'shows a watcher every change in order while two handles write',
    'shows changes to a watcher that is already waiting, under its prefix only',
    'misses nothing when a listing is followed by a watch from its revision',
    'shows from a past revision every change after it, values and deletes as they were',
    'answers any sequence of calls as a plain model of the contract does',
    'has every acknowledged write after all processes were killed',
  ],
  'revision reset': [
    'has every acknowledged write after all processes were killed',
    'never takes a revision back: through deletes, other keys, and a kill',
    'is a new incarnation once it is opened as restored, with its values, and stays it',
  ],
  'early acknowledgement': [
    'has every acknowledged write after all processes were killed',
    'never takes a revision back: through deletes, other keys, and a kill',
    'has the past of a key and the entries of the log after all processes were killed',
  ],
  'live key aged out': [
    'keeps a live value however many writes follow it and however large they are',
  ],
  'restored in place': [
    'is a new incarnation once it is opened as restored, with its values, and stays it',
  ],
  'past cut short': [
    'keeps every change of a key that is kept by age, and tells them in pages without a hole',
    'has the past of a key and the entries of the log after all processes were killed',
    'lets go by age what is kept by age, and says so, but never the last 64 changes',
  ],
  'log without age': [
    'lets go by age what is kept by age, and says so, but never the last 64 changes',
  ],
  'log in memory only': [
    'has the past of a key and the entries of the log after all processes were killed',
    'lets go by age what is kept by age, and says so, but never the last 64 changes',
  ],
};

test('the suite passes the store that the broken ones are made of', async () => {
  expect([...(await failures(() => memoryUnderTest())).keys()]).toEqual([]);
});

for (const broken of brokenStores) {
  test(`the suite goes red on a store with: ${broken.name}`, async () => {
    const failed = await failures(broken.makeSubject);
    expect(failed.get(broken.caughtBy)).toMatch(broken.message);
    expect([...failed.keys()]).toEqual(EXPECTED[broken.name]);
  });
}

test('there are fifteen broken stores, each meant for a case of its own', () => {
  expect(brokenStores.map((each) => each.name)).toEqual(Object.keys(EXPECTED));
  expect(new Set(brokenStores.map((each) => each.caughtBy)).size).toBe(15);
});
