import { expect, test } from 'vitest';
import {
  checkDurability,
  factsOf,
  gatherFacts,
  holderOf,
  judgeDurability,
  mayComeToPass,
} from './durability.ts';

const synced = (name: string) => ({ name, version: '2.10.27', syncsAlways: true });
const online = (name: string) => ({ name, isOffline: false });
const holders = ['n1', 'n2', 'n3'].map(online);

test('durability is proved when every holder of a replica syncs always', () => {
  const facts = ['n1', 'n2', 'n3', 'n4'].map(synced);
  expect(judgeDurability(facts, holders)).toMatchObject({ survivesPowerLoss: 'yes' });
});

test('durability is unknown, naming the server, when one holder is silent', () => {
  const verdict = judgeDurability([synced('n1'), synced('n3')], holders);
  expect(verdict).toMatchObject({
    survivesPowerLoss: 'unknown',
    reason: expect.stringMatching(/nats-server n2 /),
  });
});

test('an unknown verdict gives the errors of silent servers, and no password', async () => {
  // `fetch` asks nobody at port 1.
  const urls = ['http://127.0.0.1:1', 'http://[', 'http://user:secret@127.0.0.1:1'];
  const gathered = await gatherFacts({ durability: { kind: 'monitors', urls } } as never);
  expect(gathered.facts).toEqual([]);
  expect(gathered.failures[0]).toMatch(/^127\.0\.0\.1:1: fetch failed: \w/);
  expect(gathered.failures[1]).toBe('127.0.0.1:1: give its URL without a password');
  expect(gathered.failures[2]).toMatch(/^a monitor: \w/);
  const { reason } = judgeDurability([], [online('n1')], [], gathered.failures);
  expect(reason).toContain('nats-server n1 syncs (127.0.0.1:1: fetch failed');
});

test('durability is proved without a holder that is offline, as long as a majority is', () => {
  const away = [online('n1'), online('n2'), { name: 'n3', isOffline: true }];
  expect(judgeDurability([synced('n1'), synced('n2')], away)).toMatchObject({
    survivesPowerLoss: 'yes',
    proven: ['n1', 'n2'],
    silent: ['n3'],
  });
  expect(judgeDurability([synced('n1')], away)).toMatchObject({ survivesPowerLoss: 'unknown' });
  const late = [synced('n1'), synced('n2'), { ...synced('n3'), syncsAlways: false }];
  expect(judgeDurability(late, away)).toMatchObject({ survivesPowerLoss: 'no' });
});

test('durability stays proved while a proved holder is silent, and is refuted by its word', () => {
  const facts = [synced('n1'), synced('n2')];
  expect(judgeDurability(facts, holders, ['n3'])).toMatchObject({
    survivesPowerLoss: 'yes',
    silent: ['n3'],
  });
  const late = [...facts, { ...synced('n3'), syncsAlways: false }];
  expect(judgeDurability(late, holders, ['n3'])).toMatchObject({
    survivesPowerLoss: 'no',
    proven: ['n1', 'n2'],
  });
});

test('a follower counts as away if it is said to be, or the leader has not heard of it', () => {
  const peer = { name: 'n3', offline: false, active: 200e6 };
  expect(holderOf(peer).isOffline).toBe(false);
  expect(holderOf({ ...peer, offline: true }).isOffline).toBe(true);
  expect(holderOf({ ...peer, active: 9e9 }).isOffline).toBe(true);
});

test('durability may still be proved if a minority is silent, but not if none is asked', () => {
  const facts = [synced('n1'), synced('n2')];
  expect(mayComeToPass(judgeDurability(facts, holders))).toBe(true);
  expect(mayComeToPass(judgeDurability([synced('n1')], holders))).toBe(false);
  expect(mayComeToPass(judgeDurability([], [online('n1')]))).toBe(false);
  expect(mayComeToPass(judgeDurability([...facts, synced('n3')], holders))).toBe(false);
});

test('durability is unknown when nobody was asked or no holder is known', () => {
  expect(judgeDurability([], holders)).toMatchObject({ survivesPowerLoss: 'unknown' });
  expect(judgeDurability([synced('n1')], [])).toMatchObject({ survivesPowerLoss: 'unknown' });
});

test('durability is refuted, saying what to set, when one holder syncs late', () => {
  const facts = [synced('n1'), { ...synced('n2'), syncsAlways: false }];
  const verdict = judgeDurability(facts, holders);
  expect(verdict).toMatchObject({
    survivesPowerLoss: 'no',
    reason: expect.stringMatching(/n2 .*sync_interval: always/),
  });
});

test('an open without proof of durability is refused', () => {
  expect(() => checkDurability(judgeDurability([], holders))).toThrow(/monitors of all servers/);
  expect(() => checkDurability(judgeDurability([synced('n1')], [online('n1')]))).not.toThrow();
});

test('the facts of a server are read, with late syncing as the default', () => {
  const varz = {
    server_name: 'n1',
    version: '2.10.27',
    jetstream: { config: { sync_always: true } },
  };
  expect(factsOf(varz)).toEqual(synced('n1'));
  expect(factsOf({ ...varz, jetstream: { config: {} } })).toMatchObject({ syncsAlways: false });
  expect(factsOf({ ...varz, jetstream: {} })).toMatchObject({ syncsAlways: false });
});

test('no facts are read from any other answer', () => {
  for (const other of [undefined, null, 'text', [], {}, { server_name: 'n1' }]) {
    expect(factsOf(other)).toBeUndefined();
  }
});
