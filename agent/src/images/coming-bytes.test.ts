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

test('a reader waits for bytes, and for the end until all was proved', async () => {
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

test('a blob that is shorter than what is withheld shows nothing before its end', async () => {
  const coming = new ComingBytes(1_000);
  const all = asked(coming.reader()(0, never));
  coming.have(1_000);
  await soon();
  expect(all()).toBeUndefined();
  coming.end('proved');
  await soon();
  expect(all()).toBe(1_000);
});

test('what does not come to its end ends each reader', async () => {
  const coming = new ComingBytes(sizeBytes);
  coming.have(10);
  const readers = [asked(coming.reader()(10, never)), asked(coming.reader()(10, never))];
  coming.end('failed');
  await soon();
  for (const told of readers) expect(told()).toContain('does not come to its end');
});

test('what is begun again ends the readers of before, and no other', async () => {
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

test('what was proved and is begun again shows its end once it is proved again', async () => {
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

test('a reader that is gone waits no more', async () => {
  const stop = new AbortController();
  const told = asked(new ComingBytes(sizeBytes).reader()(0, stop.signal));
  stop.abort();
  await soon();
  expect(told()).toContain('given up');
});
