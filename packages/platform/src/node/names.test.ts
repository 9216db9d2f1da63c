import { expect, test } from 'vitest';
import { nodeNames } from './names.ts';

test('a name of this machine has no address to reach, however it is written', async () => {
  for (const name of ['localhost', '127.1', '2130706433', '0x7f.1', '0']) {
    expect(await nodeNames().addressOf(name), name).toMatchObject({ kind: 'forbidden' });
  }
});

test('a name that nobody knows is unknown, and an address is itself', async () => {
  expect(await nodeNames().addressOf('nosuch.invalid')).toMatchObject({ kind: 'unknown' });
  expect(await nodeNames().addressOf('192.0.2.1')).toEqual({ kind: 'found', address: '192.0.2.1' });
});
