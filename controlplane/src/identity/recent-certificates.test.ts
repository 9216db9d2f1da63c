import { expect, test } from 'vitest';
import { type RecentCertificate, RecentCertificates } from './recent-certificates.ts';

const lifetimeMs = 200_000;
/** With a life of 200 s no other certificate is created within the first second. */
const spacingMs = 1_000;

function issued(answer: string, atMs = 0, caSha256 = 'ca'): RecentCertificate<string> {
  return { rackId: 'r1', caSha256, atMs, lifetimeMs, answer };
}

const reasonOf = (act: () => unknown): string => {
  try {
    act();
    return 'none';
  } catch (error) {
    return (error as { error: { reason: string } }).error.reason;
  }
};

test('the last certificate is answered again for a small part of its life', async () => {
  const recent = new RecentCertificates<string>();
  expect(recent.last('key', 'ca', 0)).toBeUndefined();
  expect(await recent.make('key', async () => issued('first', 5_000))).toBe('first');
  for (const [nowMs, isTold] of [
    [4_999, false],
    [5_000, true],
    [5_000 + spacingMs - 1, true],
    [5_000 + spacingMs, false],
  ] as const) {
    expect(recent.last('key', 'ca', nowMs)?.answer).toBe(isTold ? 'first' : undefined);
  }
  expect(recent.last('key', 'other', 5_000)).toBeUndefined();
  expect(recent.last('another key', 'ca', 5_000)).toBeUndefined();
});

test('the last certificate is reported four times more, then when to come again', async () => {
  const recent = new RecentCertificates<string>();
  const first = issued('first');
  await recent.make('key', async () => first);
  for (let told = 0; told < 4; told += 1) recent.repeat('key', first, 300);
  expect(() => recent.repeat('key', first, 300)).toThrow(
    expect.objectContaining({
      error: expect.objectContaining({
        reason: 'CERTIFICATE_JUST_ISSUED',
        retryAfterMs: spacingMs - 300,
      }),
    }),
  );
  const second = issued('second', 2_000);
  await recent.make('key', async () => second);
  expect(reasonOf(() => recent.repeat('key', second, 2_000))).toBe('none');
});

test('a key has one certificate made at a time, and again after a failure', async () => {
  const recent = new RecentCertificates<string>();
  const failing = recent.make('key', async () => {
    throw new Error('the store is away');
  });
  const meanwhile = recent.make('key', async () => issued('second'));
  await expect(meanwhile).rejects.toMatchObject({ error: { reason: 'CERTIFICATE_UNDER_WAY' } });
  expect(await recent.make('other key', async () => issued('other'))).toBe('other');
  await expect(failing).rejects.toThrow('the store is away');
  expect(recent.last('key', 'ca', 0)).toBeUndefined();
  expect(await recent.make('key', async () => issued('third'))).toBe('third');
});

test('the first of very many keys are forgotten, if they asked no more', async () => {
  const recent = new RecentCertificates<string>();
  for (let at = 0; at < 8_192; at += 1) await recent.make(`key ${at}`, async () => issued('one'));
  await recent.make('key 0', async () => issued('again'));
  expect(recent.last('key 1', 'ca', 0)?.answer).toBe('one');
  await recent.make('one more', async () => issued('one'));
  expect(recent.last('key 0', 'ca', 0)?.answer).toBe('again');
  expect(recent.last('key 1', 'ca', 0)).toBeUndefined();
  expect(recent.last('key 2', 'ca', 0)?.answer).toBe('one');
});
