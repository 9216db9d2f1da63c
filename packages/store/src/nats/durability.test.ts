import { expect, test } from 'vitest';
import { checkDurability, factsOf, judgeDurability } from './durability.ts';

const synced = (name: string) => ({ name, version: '2.10.27', syncsAlways: true });
const holders = ['n1', 'n2', 'n3'];

test('is proved when every holder of a replica syncs always', () => {
  const facts = [...holders, 'n4'].map(synced);
  expect(judgeDurability(facts, holders)).toMatchObject({ survivesPowerLoss: 'yes' });
});

test('is unknown, naming the server, when one holder is silent', () => {
  const verdict = judgeDurability([synced('n1'), synced('n3')], holders);
  expect(verdict).toMatchObject({
    survivesPowerLoss: 'unknown',
    reason: expect.stringMatching(/nats-server n2 /),
  });
});

test('is unknown when nobody was asked or no holder is known', () => {
  expect(judgeDurability([], holders)).toMatchObject({ survivesPowerLoss: 'unknown' });
  expect(judgeDurability([synced('n1')], [])).toMatchObject({ survivesPowerLoss: 'unknown' });
});

test('is refuted, saying what to set, when one holder syncs late', () => {
  const facts = [synced('n1'), { ...synced('n2'), syncsAlways: false }];
  const verdict = judgeDurability(facts, holders);
  expect(verdict).toMatchObject({
    survivesPowerLoss: 'no',
    reason: expect.stringMatching(/n2 .*sync_interval: always/),
  });
});

test('refuses to open unproved, unless accepted', () => {
  const verdict = judgeDurability([], holders);
  expect(() => checkDurability(verdict, false)).toThrow(/monitors of all servers/);
  expect(() => checkDurability(verdict, true)).not.toThrow();
});

test('reads what a server says of itself, and late syncing as the default', () => {
  const varz = {
    server_name: 'n1',
    version: '2.10.27',
    jetstream: { config: { sync_always: true } },
  };
  expect(factsOf(varz)).toEqual(synced('n1'));
  expect(factsOf({ ...varz, jetstream: { config: {} } })).toMatchObject({ syncsAlways: false });
  expect(factsOf({ ...varz, jetstream: {} })).toMatchObject({ syncsAlways: false });
});

test('takes no facts from anything else', () => {
  for (const other of [undefined, null, 'text', [], {}, { server_name: 'n1' }]) {
    expect(factsOf(other)).toBeUndefined();
  }
});
