import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type HostUid, store as wire } from '@rackwright/messages';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { historyOf } from './history.ts';
import {
  foldsOf,
  type LedgerEntry,
  type LedgerFacts,
  type LedgerFold,
  wholeEntriesMax,
} from './ledger-folding.ts';

/** A ledger as in a store: it may have changed since it was listed. */
class Ledger {
  readonly #entries = new Map<string, LedgerEntry>();
  #revision = 0;

  deployed(hostUid: HostUid, digest: string, endMs: number, version = `v-${digest}`): void {
    const key = `deployments.p.${hostUid}.${endMs}`;
    if (this.#entries.has(key)) return;
    const init = { poolUid: 'p', hostUid, digest, version, endTime: timestampFromMs(endMs) };
    this.#put(key, create(wire.DeploymentRecordSchema, init));
  }

  list(): LedgerEntry[] {
    return [...this.#entries.values()];
  }

  get size(): number {
    return this.#entries.size;
  }

  /** Applies folds, up to the `steps`-th write or removal: there it crashes. */
  carryOut(folds: readonly LedgerFold[], steps = Number.POSITIVE_INFINITY): void {
    let left = steps;
    for (const { write, removals } of folds) {
      if (write !== undefined) {
        if (left-- <= 0) return;
        const present = this.#entries.get(write.key)?.revision ?? 'absent';
        if (present !== write.expected) continue;
        this.#put(write.key, write.record);
      }
      for (const { key, revision } of removals) {
        if (left-- <= 0) return;
        if (this.#entries.get(key)?.revision === revision) this.#entries.delete(key);
      }
    }
  }

  #put(key: string, record: wire.DeploymentRecord): void {
    this.#revision += 1;
    this.#entries.set(key, { key, revision: this.#revision, record });
  }

  history() {
    const records = this.list().map(({ record }) => record);
    return historyOf(records, [], { limit: Number.POSITIVE_INFINITY, target: '' }).map(
      ({ digest, version, hostCount, lastDeployed }) => [digest, version, hostCount, lastDeployed],
    );
  }
}

function factsOf(hostUids: readonly HostUid[], more: Partial<LedgerFacts> = {}): LedgerFacts {
  return {
    ...{ beforeMs: 0, hostUids: new Set(hostUids), digestsInUse: new Set(), removalsMax: 1_000 },
    ...more,
  };
}

function settle(ledger: Ledger, facts: LedgerFacts): void {
  for (let pass = 0; pass < 40; pass += 1) ledger.carryOut(foldsOf(ledger.list(), facts));
}

test('thousands of entries become few, and the history is the same', () => {
  const ledger = new Ledger();
  const hosts = Array.from({ length: 40 }, (_, index) => `h${index}`);
  for (let round = 0; round < 150; round += 1) {
    for (const [at, host] of hosts.entries()) {
      const moved = round % 3 === 0 && at > 20 ? round - 1 : round;
      ledger.deployed(host, `sha256:${moved}`, round * 1_000 + at);
    }
  }
  const before = ledger.history();
  expect(ledger.size).toBe(6_000);
  settle(ledger, factsOf(hosts));
  expect(ledger.history()).toEqual(before);
  expect(ledger.size).toBeLessThanOrEqual(wholeEntriesMax + 150);
  settle(ledger, factsOf(hosts, { beforeMs: 1e9 }));
  expect(ledger.history()).toEqual(before);
  expect(ledger.size, 'one for each digest').toBe(before.length);
  const whole = ledger.list();
  settle(ledger, factsOf(hosts, { beforeMs: 1e9 }));
  expect(ledger.list(), 'and nothing is written any more').toEqual(whole);
});

const deployments = fc.array(fc.record({ host: fc.nat(4), digest: fc.nat(3), endMs: fc.nat(50) }), {
  maxLength: 30,
});

test('L1, L2: no death, no other replica and no gone host changes what the history says', () => {
  const steps = fc.array(
    fc.record({ beforeMs: fc.nat(60), diesAfter: fc.nat(9), gone: fc.nat(3), stale: fc.boolean() }),
    { maxLength: 8 },
  );
  fc.assert(
    fc.property(deployments, deployments, steps, (first, later, passes) => {
      const ledger = new Ledger();
      const plain = new Ledger();
      const write = (all: typeof first, sinceMs: number) => {
        for (const { host, digest, endMs } of all) {
          for (const each of [ledger, plain]) {
            each.deployed(`h${host}`, `sha256:${digest}`, sinceMs + endMs);
          }
        }
      };
      write(first, 0);
      // Host 4 always exists; a removed host never returns, and deploys nothing any more.
      const gone = new Set<string>();
      const digestsInUse = new Set(['sha256:0', 'sha256:1', 'sha256:2', 'sha256:3']);
      let seen = ledger.list();
      for (const { beforeMs, diesAfter, gone: goes, stale } of passes) {
        gone.add(`h${goes}`);
        const hosts = ['h0', 'h1', 'h2', 'h3', 'h4'].filter((each) => !gone.has(each));
        // Another replica, with an older listing.
        if (!stale) seen = ledger.list();
        ledger.carryOut(foldsOf(seen, factsOf(hosts, { beforeMs, digestsInUse })), diesAfter);
        expect(ledger.history()).toEqual(plain.history());
      }
      write(
        later.filter(({ host }) => !gone.has(`h${host}`)),
        100,
      );
      settle(ledger, factsOf(['h4'], { beforeMs: 1_000, digestsInUse }));
      expect(ledger.history()).toEqual(plain.history());
      for (const { record } of ledger.list()) {
        expect(record.foldedHostUids.filter((uid) => uid !== 'h4')).toEqual([]);
      }
    }),
  );
});

test('L3: a digest is deleted once its hosts are gone, no pool wants it, and it is old', () => {
  const ledger = new Ledger();
  ledger.deployed('gone', 'sha256:a', 1_000);
  ledger.deployed('h1', 'sha256:b', 1_000);
  ledger.deployed('gone', 'sha256:c', 9_000);
  ledger.deployed('gone', 'sha256:d', 1_001);
  const facts = factsOf(['h1'], { beforeMs: 5_000, digestsInUse: new Set(['sha256:d']) });
  settle(ledger, facts);
  expect(ledger.history().map(([digest]) => digest)).toEqual(['sha256:c', 'sha256:d', 'sha256:b']);
});

test('no more entries are deleted at once than the limit', () => {
  const ledger = new Ledger();
  for (let at = 0; at < 100; at += 1) ledger.deployed('h1', `sha256:${at % 7}`, at);
  const folds = foldsOf(ledger.list(), factsOf(['h1'], { beforeMs: 1e6, removalsMax: 12 }));
  expect(folds.flatMap(({ removals }) => removals)).toHaveLength(12);
});
