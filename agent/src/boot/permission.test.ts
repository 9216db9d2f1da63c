import { asMac } from '@rackwright/dhcp';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { BootGrant, BootHost, BootMemory } from './memory.ts';
import { bootDecision, isAboutHost, permissionOf } from './permission.ts';

const mac = asMac('52:54:00:77:00:01');
const host: BootHost = { hostUid: 'u1', hostName: 'one', macs: [mac, '52:54:00:77:00:02'] };
const grant: BootGrant = {
  hostUid: 'u1',
  operationId: 'u1/1/2/1',
  bootToken: 'token',
  openedAtMs: 1_000,
  expiresAtMs: 2_000,
};

function memory(change: Partial<BootMemory> & { hosts?: readonly BootHost[] } = {}): BootMemory {
  const { hosts = [host], ...rest } = change;
  return { snapshot: { generation: 1, hosts }, grants: [grant], ...rest };
}

test('a host with an open grant boots the runner, by any of its MACs in any spelling', () => {
  for (const spelling of [mac, '52-54-00-77-00-02', mac.toUpperCase()]) {
    expect(bootDecision(memory(), asMac(spelling), 1_500)).toEqual({
      kind: 'runner',
      hostUid: 'u1',
      hostName: 'one',
      operationId: 'u1/1/2/1',
      bootToken: 'token',
    });
  }
});

test('the server takes MACs of the snapshot in any spelling', () => {
  const hosts = [{ ...host, macs: ['52-54-00-77-00-0A'] }];
  expect(bootDecision(memory({ hosts }), asMac('52:54:00:77:00:0a'), 1_500).kind).toBe('runner');
});

test('the server permits a boot exactly within its window', () => {
  expect(bootDecision(memory(), mac, 1_000).kind).toBe('runner');
  expect(bootDecision(memory(), mac, 1_999).kind).toBe('runner');
  const expired = { kind: 'localBoot', hostUid: 'u1', reason: 'grantExpired' };
  expect(bootDecision(memory(), mac, 2_000)).toEqual(expired);
});

test('the server sends a host without a grant to its disk', () => {
  const noGrant = { kind: 'localBoot', hostUid: 'u1', reason: 'noGrant' };
  expect(bootDecision(memory({ grants: [] }), mac, 1_500)).toEqual(noGrant);
  const other = [{ ...grant, hostUid: 'u2' }];
  expect(bootDecision(memory({ grants: other }), mac, 1_500)).toEqual(noGrant);
});

test('a MAC that is not in the snapshot is of no host, with or without a grant', () => {
  const unknown = { kind: 'unknownHost', reason: 'off' };
  expect(bootDecision(memory({ hosts: [] }), mac, 1_500)).toEqual(unknown);
});

test('neither of two hosts that claim one MAC boots the runner', () => {
  const hosts = [host, { hostUid: 'u2', hostName: 'two', macs: [mac] }];
  expect(bootDecision(memory({ hosts }), mac, 1_500)).toMatchObject({ reason: 'ambiguousMac' });
  expect(bootDecision(memory({ hosts }), asMac('52:54:00:77:00:02'), 1_500).kind).toBe('runner');
});

test('the latest grant of a host counts, even if it has expired', () => {
  const later = { ...grant, operationId: 'later', openedAtMs: 1_200, expiresAtMs: 1_300 };
  const grants = [later, grant];
  expect(bootDecision(memory({ grants }), mac, 1_250)).toMatchObject({ operationId: 'later' });
  expect(bootDecision(memory({ grants }), mac, 1_500)).toMatchObject({ reason: 'grantExpired' });
});

test('the image of a host without a disk never expires, and gives way to a grant', () => {
  const hosts = [{ ...host, netboot: true }];
  const image = { kind: 'image', hostUid: 'u1', hostName: 'one' };
  const decision = bootDecision(memory({ hosts, grants: [] }), mac, 1_500);
  expect(decision).toEqual(image);
  // It keeps its address as other hosts do, and DHCP shows it the way to the script.
  expect([isAboutHost(decision), permissionOf(decision)]).toEqual([true, 'runner']);
  expect(bootDecision(memory({ hosts }), mac, 1_500).kind).toBe('runner');
  expect(bootDecision(memory({ hosts }), mac, 2_000)).toEqual(image);
  const claimed = [...hosts, { hostUid: 'u2', hostName: 'two', macs: [mac] }];
  const ambiguous = bootDecision(memory({ hosts: claimed, grants: [] }), mac, 1_500);
  expect(ambiguous).toMatchObject({ reason: 'ambiguousMac' });
});

test('an expired grant stays expired when the clock goes back', () => {
  expect(bootDecision(memory({ writtenAtMs: 2_500 }), mac, 1_500)).toMatchObject({
    reason: 'grantExpired',
  });
  expect(bootDecision(memory(), mac, 0).kind).toBe('runner');
});

test('a change of the snapshot takes effect at the next request', () => {
  const before = memory();
  expect(bootDecision(before, mac, 1_500).kind).toBe('runner');
  const after = { ...before, snapshot: { generation: 2, hosts: [] } };
  expect(bootDecision(after, mac, 1_500).kind).toBe('unknownHost');
});

test('the server starts the runner only for a known host inside a window of its own', () => {
  const uid = fc.constantFrom('u1', 'u2', 'u3');
  const time = fc.nat(100);
  const someMac = fc
    .constantFrom('52:54:00:00:00:01', '52:54:00:00:00:02', '52:54:00:00:00:03')
    .map(asMac);
  const hosts = fc.array(
    fc.record({ hostUid: uid, hostName: uid, macs: fc.array(someMac, { maxLength: 2 }) }),
    { maxLength: 4 },
  );
  const grants = fc.array(
    fc.record({
      hostUid: uid,
      operationId: uid,
      bootToken: uid,
      openedAtMs: time,
      expiresAtMs: time,
    }),
    { maxLength: 4 },
  );
  fc.assert(
    fc.property(hosts, grants, someMac, time, time, (known, open, asked, nowMs, writtenAtMs) => {
      const all = { snapshot: { generation: 1, hosts: known }, grants: open, writtenAtMs };
      const decision = bootDecision(all, asked, nowMs);
      const owners = known.filter(({ macs }) => macs.includes(asked));
      expect(decision.kind === 'unknownHost').toBe(owners.length === 0);
      if (decision.kind !== 'runner') return;
      expect(owners.map(({ hostUid }) => hostUid)).toEqual([decision.hostUid]);
      const used = open.filter(({ hostUid }) => hostUid === decision.hostUid);
      const atMs = Math.max(nowMs, writtenAtMs);
      expect(used.some(({ expiresAtMs }) => expiresAtMs > atMs)).toBe(true);
    }),
    { numRuns: 1_000 },
  );
});
