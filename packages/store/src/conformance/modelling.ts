/** Random calls against a model that anyone can check by eye: one array of changes per key. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import {
  asWriteId,
  type Change,
  type ExpectedRevision,
  type StateStore,
  type WriteId,
  type WriteResult,
} from '../contract.ts';
import { isUnder } from '../key.ts';
import { bytes, type ConformanceCase, eventsUntil, line, withoutRepeats } from './subject.ts';

/** Few keys and ids, so that calls meet; one key lies below another. */
const KEYS = ['a', 'a.b', 'ab', 'c'] as const;
const CALLS_MAX = 40;
const RUNS = 12;

interface Call {
  readonly kind: 'put' | 'delete';
  readonly key: (typeof KEYS)[number];
  /**
   * The caller's guess at the key's last change, in changes before the true one; −1: absent.
   */
  readonly behind: number;
  /** Which of the writes before is repeated, counted back; beyond them it is a new one. */
  readonly askedBack: number;
}

const anyCall: fc.Arbitrary<Call> = fc.record({
  kind: fc.constantFrom('put', 'put', 'delete'),
  key: fc.constantFrom(...KEYS),
  behind: fc.constantFrom(-1, 0, 0, 0, 1, 2),
  askedBack: fc.integer({ min: 1, max: 30 }),
});

class Model {
  readonly #changes = new Map<string, Change[]>();
  highest: number;

  constructor(highest: number) {
    this.highest = highest;
  }

  of(key: string): readonly Change[] {
    return this.#changes.get(key) ?? [];
  }

  all(): Change[] {
    return [...this.#changes.values()].flat().sort((a, b) => a.revision - b.revision);
  }

  expectedOf(key: string, behind: number): ExpectedRevision {
    return behind < 0 ? 'absent' : (this.of(key).at(-1 - behind)?.revision ?? 'absent');
  }

  /** Checks the answer to a write and adopts its result. */
  fold(change: Change, expected: ExpectedRevision, result: WriteResult): void {
    const earlier = this.of(change.key).find((each) => each.writeId === change.writeId);
    const last = this.of(change.key).at(-1);
    const isFree = last === undefined || last.kind === 'delete';
    const fits = expected === 'absent' ? isFree : last?.revision === expected;
    if (earlier !== undefined) {
      assert.deepEqual(result, {
        kind: 'ok',
        revision: earlier.revision,
        writeId: earlier.writeId,
      });
    } else if (!fits) {
      assert.equal(result.kind, 'conflict');
    } else {
      assert.ok(result.kind === 'ok' && result.revision > this.highest, JSON.stringify(result));
      this.highest = result.revision;
      const changes = [...this.of(change.key), { ...change, revision: result.revision }];
      this.#changes.set(change.key, changes);
    }
  }
}

/** A write as it was requested; a retry repeats all of this. */
interface RequestedWrite {
  readonly change: Change;
  readonly expected: ExpectedRevision;
}

function ask(model: Model, root: string, call: Call, writeId: WriteId): RequestedWrite | undefined {
  const key = `${root}.${call.key}`;
  const expected = model.expectedOf(key, call.behind);
  const written = { key, revision: 0, writeId };
  if (call.kind === 'put') {
    return { change: { kind: 'put', ...written, value: bytes(writeId) }, expected };
  }
  return expected === 'absent' ? undefined : { change: { kind: 'delete', ...written }, expected };
}

async function make(store: StateStore, { change, expected }: RequestedWrite): Promise<WriteResult> {
  if (change.kind === 'put') return store.put(change.key, change.value, expected, change.writeId);
  return store.delete(change.key, Number(expected), change.writeId);
}

const likeTheModel: ConformanceCase = {
  name: 'answers any sequence of calls as a plain model of the contract does',
  async run(subject, limits) {
    let run = 0;
    const property = fc.asyncProperty(
      fc.array(anyCall, { maxLength: CALLS_MAX, size: 'max' }),
      async (calls) => {
        run += 1;
        const root = `model${run}`;
        const start = await subject.first.latestRevision();
        const model = new Model(start);
        const askedBefore: RequestedWrite[] = [];
        for (const [at, call] of calls.entries()) {
          const store = at % 2 === 0 ? subject.first : subject.second;
          const requested =
            askedBefore.at(-call.askedBack) ?? ask(model, root, call, asWriteId(`id-${at}`));
          if (requested === undefined) continue;
          askedBefore.push(requested);
          model.fold(requested.change, requested.expected, await make(store, requested));
        }
        for (const key of KEYS.map((each) => `${root}.${each}`)) {
          const changes = model.of(key);
          assert.deepEqual((await subject.first.history(key)).map(line), changes.map(line));
          const { asOf: _asOf, ...now } = await subject.second.get(key);
          assert.equal(now.revision, changes.at(-1)?.revision);
          assert.equal(now.kind, changes.at(-1)?.kind === 'put' ? 'found' : 'absent');
          const under = KEYS.map((each) => `${root}.${each}`).filter((each) => isUnder(key, each));
          const live = under.filter((each) => model.of(each).at(-1)?.kind === 'put').sort();
          const { entries } = await subject.first.list(key);
          assert.deepEqual(
            entries.map((entry) => entry.key),
            live,
          );
        }
        if (model.highest === start) return;
        const watch = subject.second.watch(start, root);
        const seen = withoutRepeats(await eventsUntil(watch, model.highest, subject, limits));
        assert.deepEqual(seen.map(line), model.all().map(line));
      },
    );
    const { seed } = limits;
    await fc.assert(property, {
      numRuns: RUNS,
      ...(seed === undefined ? {} : { seed, endOnFailure: true }),
    });
  },
};

export const modellingCases: readonly ConformanceCase[] = [likeTheModel];
