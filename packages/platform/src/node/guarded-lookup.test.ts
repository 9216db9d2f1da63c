import type { LookupAddress } from 'node:dns';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { AddressRefused, guardedLookup } from './guarded-lookup.ts';

/** A name server that gives another answer each time. */
function answering(...answers: (readonly string[])[]) {
  return guardedLookup(443, ['127.0.0.1:443'], (_name, _options, answer) => {
    const found = (answers.shift() ?? []).map((address): LookupAddress => {
      return { address, family: address.includes(':') ? 6 : 4 };
    });
    answer(null, found);
  });
}

test('a lookup leaves of the addresses of a name only those that may be reached', async () => {
  const lookup = promisify(answering(['169.254.169.254', '::1', '192.0.2.1', '127.0.0.1']));
  expect(await lookup('a.example', { all: true })).toEqual([
    { address: '192.0.2.1', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ]);
});

test('each connection is judged by the answer that it gets', async () => {
  const lookup = promisify(answering(['192.0.2.1'], ['169.254.169.254'], ['::ffff:169.254.1.1']));
  expect(await lookup('a.example', {})).toBe('192.0.2.1');
  await expect(lookup('a.example', {})).rejects.toBeInstanceOf(AddressRefused);
  await expect(lookup('a.example', {})).rejects.toThrow(
    'a.example is at ::ffff:169.254.1.1, which is a link-local address and not listed',
  );
});
