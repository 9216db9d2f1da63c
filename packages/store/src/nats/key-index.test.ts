import { expect, test } from 'vitest';
import { KeyIndex } from './key-index.ts';
import type { KeyChange } from './watching.ts';

/** A stream of changes that the test writes. */
class Stream {
  readonly #changes: KeyChange[] = [];
  #wake = () => {};
  #over = false;
  followers = 0;

  tell(kind: KeyChange['kind'], key: string, revision: number, isWhole = true): void {
    this.#changes.push({ kind, key, revision, isWhole });
    this.#wake();
  }

  end(): void {
    this.#over = true;
    this.#wake();
  }

  async *follow(): AsyncGenerator<KeyChange> {
    this.followers += 1;
    for (let at = 0; !this.#over; ) {
      const change = this.#changes[at];
      if (change === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      at += 1;
      yield change;
    }
    this.#over = false;
  }
}

const never = () => new Promise<void>(() => {});
const atOnce = () => Promise.resolve();

test('the index knows a key once the change that made it has come, and not before', async () => {
  const stream = new Stream();
  const index = new KeyIndex(() => stream.follow(), never);
  expect(stream.followers, 'it follows though nobody has asked').toBe(0);
  stream.tell('put', 'hosts.b', 3);
  const waiting = index.caughtUp(5, 1_000);
  stream.tell('put', 'hosts.a', 4);
  stream.tell('delete', 'hosts.b', 5);
  expect(await waiting).toBe(true);
  expect(index.under('hosts', '', 10)).toEqual(['hosts.a']);
  expect(await index.caughtUp(4, 1_000)).toBe(true);
  expect(stream.followers).toBe(1);
});

test('a key that was written again before it was told of is not missed', async () => {
  const stream = new Stream();
  const index = new KeyIndex(() => stream.follow(), never);
  const waiting = index.caughtUp(6, 1_000);
  stream.tell('put', 'hosts.b', 6, false);
  await new Promise((resolve) => setImmediate(resolve));
  stream.tell('put', 'hosts.a', 9);
  expect(await waiting).toBe(true);
  expect(index.under('hosts', '', 10)).toEqual(['hosts.a', 'hosts.b']);
});

test('a caller that need not wait any more leaves no timer behind', async () => {
  const stream = new Stream();
  const signals: AbortSignal[] = [];
  const index = new KeyIndex(
    () => stream.follow(),
    (_, signal) => {
      signals.push(signal);
      return never();
    },
  );
  stream.tell('put', 'hosts.a', 1);
  expect(await index.caughtUp(1, 1_000)).toBe(true);
  expect(signals.map(({ aborted }) => aborted)).toEqual([true]);
});

test('a caller that waits too long hears that the index is behind', async () => {
  const stream = new Stream();
  const index = new KeyIndex(() => stream.follow(), atOnce);
  expect(await index.caughtUp(1, 1_000)).toBe(false);
});

test('an index begins again when no more changes are reported to it', async () => {
  const stream = new Stream();
  const index = new KeyIndex(() => stream.follow(), never);
  stream.tell('put', 'hosts.a', 1);
  expect(await index.caughtUp(1, 1_000)).toBe(true);
  stream.end();
  await new Promise((resolve) => setImmediate(resolve));
  stream.tell('put', 'hosts.b', 2);
  expect(await index.caughtUp(2, 1_000)).toBe(true);
  expect(stream.followers).toBe(2);
  expect(index.under('', '', 10)).toEqual(['hosts.a', 'hosts.b']);
});

test('the driver’s own keys are not in the index', async () => {
  const stream = new Stream();
  const index = new KeyIndex(() => stream.follow(), never);
  stream.tell('put', '_store.incarnation', 1);
  await index.caughtUp(1, 1_000);
  expect(index.under('', '', 10)).toEqual([]);
});
