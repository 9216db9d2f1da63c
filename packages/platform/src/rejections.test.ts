import { expect, test } from 'vitest';
import { abandon, markHandled, whenSettled } from './rejections.ts';

/** Rejections that Node counts as unhandled while `act` runs and shortly after it. */
async function unhandledDuring(act: () => void): Promise<unknown[]> {
  const others = process.listeners('unhandledRejection');
  const seen: unknown[] = [];
  const note = (reason: unknown): void => void seen.push(reason);
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', note);
  try {
    act();
    await new Promise((resolve) => setTimeout(resolve, 5));
    return seen;
  } finally {
    process.off('unhandledRejection', note);
    for (const other of others) process.on('unhandledRejection', other);
  }
}

test('a marked promise is no unhandled rejection, and still rejects for its owner', async () => {
  const error = new Error('refused');
  const bare = await unhandledDuring(() => void Promise.reject(error));
  expect(bare).toEqual([error]);
  let marked: Promise<unknown> = Promise.resolve();
  const seen = await unhandledDuring(() => {
    marked = Promise.reject(error);
    markHandled(marked);
  });
  expect(seen).toEqual([]);
  await expect(marked).rejects.toBe(error);
});

test('whenSettled resolves after a promise has settled either way', async () => {
  const done: string[] = [];
  const promises = [Promise.resolve('a'), Promise.reject(new Error('b'))];
  for (const promise of promises) {
    expect(await whenSettled(promise)).toBeUndefined();
    done.push('settled');
  }
  const slow = Promise.withResolvers<void>();
  const after = whenSettled(slow.promise).then(() => done.push('slow'));
  await Promise.resolve();
  expect(done).toEqual(['settled', 'settled']);
  slow.reject(new Error('c'));
  await after;
  expect(done).toEqual(['settled', 'settled', 'slow']);
});

test('an abandoned iterator closes, and its error is no unhandled rejection', async () => {
  let isClosed = false;
  async function* failing(): AsyncGenerator<number> {
    try {
      yield 1;
    } finally {
      isClosed = true;
      await Promise.reject(new Error('while closing'));
    }
  }
  const iterator = failing();
  await iterator.next();
  expect(await unhandledDuring(() => abandon(iterator))).toEqual([]);
  expect(isClosed).toBe(true);
  abandon({ next: () => Promise.resolve({ done: true, value: undefined }) });
});
