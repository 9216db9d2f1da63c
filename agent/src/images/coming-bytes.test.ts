import { expect, test } from 'vitest';
import { ComingBytes } from './coming-bytes.ts';

const never = new AbortController().signal;
const withheld = 4096;
const sizeBytes = 100_000;

/** The answer to the reader, once there is one. */
function asked(promise: Promise<number>): () => number | string | undefined {
  let told: number | string | undefined;
  promise.then(
    (bytes) => (told = bytes),
    (error: unknown) => (told = String(error)),
  );
  return () => told;
}

const soon = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

test('a reader waits for bytes, and gets the last ones only once all are proved', async () => {
  const coming = new ComingBytes(sizeBytes);
  const readable = coming.reader();
  const first = asked(readable(0, never));
  await soon();
  expect(first()).toBeUndefined();
  coming.have(50_000);
  await soon();
  expect(first()).toBe(50_000);
  coming.have(sizeBytes);
  expect(await readable(50_000, never)).toBe(sizeBytes - withheld);
  const end = asked(readable(sizeBytes - withheld, never));
  await soon();
  expect(end()).toBeUndefined();
  coming.end('proved');
  await soon();
  expect(end()).toBe(sizeBytes);
});

test('a blob shorter than the withheld part shows no byte before it is proved', async () => {
  const coming = new ComingBytes(1_000);
  const all = asked(coming.reader()(0, never));
  coming.have(1_000);
  await soon();
  expect(all()).toBeUndefined();
  coming.end('proved');
  await soon();
  expect(all()).toBe(1_000);
});

test('a fetch that fails ends each of its readers', async () => {
  const coming = new ComingBytes(sizeBytes);
  coming.have(10);
  const readers = [asked(coming.reader()(10, never)), asked(coming.reader()(10, never))];
  coming.end('failed');
  await soon();
  for (const told of readers) expect(told()).toContain('does not come to its end');
});

test('a fetch that begins again ends its earlier readers and no others', async () => {
  const coming = new ComingBytes(sizeBytes);
  coming.have(5_000);
  const [before, waiting] = [coming.reader(), asked(coming.reader()(5_000, never))];
  coming.have(0);
  const after = coming.reader();
  coming.have(7_000);
  await soon();
  expect(waiting()).toContain('does not come to its end');
  await expect(before(0, never)).rejects.toThrow('does not come to its end');
  expect(await after(0, never)).toBe(7_000);
});

test('a blob that is fetched again shows its end only once it is proved again', async () => {
  const coming = new ComingBytes(sizeBytes);
  coming.have(sizeBytes);
  coming.end('proved');
  const before = coming.reader();
  expect(await before(0, never)).toBe(sizeBytes);
  // A disk that was full when it was made durable: all of it is hashed again.
  coming.have(sizeBytes);
  await expect(before(0, never)).rejects.toThrow('does not come to its end');
  expect(await coming.reader()(0, never)).toBe(sizeBytes - withheld);
  coming.end('proved');
  expect(await coming.reader()(0, never)).toBe(sizeBytes);
});

test('a reader that has left does not wait any longer', async () => {
  const stop = new AbortController();
  const told = asked(new ComingBytes(sizeBytes).reader()(0, stop.signal));
  stop.abort();
  await soon();
  expect(told()).toContain('given up');
});
