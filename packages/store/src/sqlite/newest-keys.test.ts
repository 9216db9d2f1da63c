/** What waits in memory, what the table says and what a killed process leaves are one answer. */

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { expect, test } from 'vitest';
import { asWriteId } from '../contract.ts';
import type { StoredChange } from '../write.ts';
import { SqliteDatabase } from './database.ts';
import { SCHEMA } from './schema.ts';
import { Values } from './values.ts';

const limits = { keysMax: 8, changesMax: 20 };
const keys = Array.from({ length: 40 }, (_, at) => `hosts.h${at}`);

function drawing(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * limit);
  };
}

/** The driver's database beside a map with the right results. */
class Both {
  readonly file = new DatabaseSync(':memory:');
  readonly model = new Map<string, StoredChange>();
  readonly counts = new Map<string, number>();
  database: SqliteDatabase;

  constructor() {
    this.file.exec(SCHEMA);
    this.database = this.#open();
  }

  #open(): SqliteDatabase {
    return new SqliteDatabase(this.file, new Values(this.file, undefined), () => false, limits);
  }

  /** What a process that was killed has left. */
  reopen(): void {
    this.database = this.#open();
  }

  write(names: readonly string[], draw: (limit: number) => number): void {
    const made = new Map<string, StoredChange>();
    this.database.transaction(() => {
      for (const key of names) made.set(key, this.#add(key, draw));
    });
    for (const [key, change] of made) this.model.set(key, change);
    for (const key of names) this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
  }

  #add(key: string, draw: (limit: number) => number): StoredChange {
    const revision = this.database.latest() + 1;
    const previous = this.database.last(key)?.revision ?? 0;
    const written = { key, revision, previous, writeId: asWriteId(`w${revision}`), atMs: revision };
    const isPut = draw(4) > 0;
    const value = Uint8Array.of(revision & 255);
    const change: StoredChange = isPut
      ? { kind: 'put', ...written, value }
      : { kind: 'delete', ...written };
    this.database.add(change);
    return change;
  }

  fail(names: readonly string[], draw: (limit: number) => number): void {
    const failing = () =>
      this.database.transaction(() => {
        for (const key of names) this.#add(key, draw);
        throw new Error('the disk is full');
      });
    assert.throws(failing, /the disk is full/);
  }

  check(): void {
    for (const key of keys) assert.deepEqual(this.database.last(key), this.model.get(key));
    const live = [...this.model.values()].filter(({ kind }) => kind === 'put');
    const wanted = live.map(({ key }) => key).sort();
    const names = (found: readonly StoredChange[]) => found.map(({ key }) => key);
    assert.deepEqual(names(this.database.live('hosts')), wanted);
    assert.deepEqual(names(this.database.live('hosts', '', 0)), []);
    for (const limit of [1, 3, 7]) {
      const paged: string[] = [];
      for (let after = ''; ; ) {
        const page = names(this.database.live('', after, limit));
        paged.push(...page);
        if (page.length < limit) break;
        after = page.at(-1) ?? '';
      }
      assert.deepEqual(paged, wanted);
    }
  }
}

test('every key has its newest change, in lists and pages too, whatever was killed', () => {
  for (let seed = 1; seed <= 12; seed += 1) {
    const draw = drawing(seed);
    const both = new Both();
    for (let round = 0; round < 60; round += 1) {
      const names = Array.from({ length: 1 + draw(6) }, () => keys[draw(keys.length)] ?? '');
      const isFailing = draw(8) === 0;
      if (isFailing) both.fail(names, draw);
      else both.write([...new Set(names)], draw);
      if (draw(6) === 0) both.reopen();
      if (round % 5 === 0) both.check();
    }
    both.check();
    both.reopen();
    both.check();
  }
});

test('few keys that are written again and again are trimmed, and wait no longer', () => {
  const both = new Both();
  const draw = () => 1;
  for (let round = 0; round < 400; round += 1) both.write(['hosts.h1', 'hosts.h2'], draw);
  const { n } = both.file.prepare('SELECT count(*) AS n FROM changes').get() as { n: number };
  expect(n).toBeGreaterThanOrEqual(2 * 64);
  expect(n).toBeLessThanOrEqual(2 * 128 + 2 * limits.changesMax);
  const { revision } = both.file.prepare('SELECT revision FROM indexed').get() as {
    revision: number;
  };
  expect(both.database.latest() - revision).toBeLessThanOrEqual(2 * limits.changesMax);
  both.check();
});
