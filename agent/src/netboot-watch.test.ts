import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { asMac } from '@rackwright/dhcp';
import type { HostUid } from '@rackwright/messages';
import { describe, expect, test } from 'vitest';
import {
  defaultNetbootWatchLimits,
  type NetbootMemory,
  NetbootWatch,
  type UnexpectedNetboot,
} from './netboot-watch.ts';

const grant = { hostUid: 'uid-a', operationId: 'op-a', openedAtMs: 0, expiresAtMs: 1_200_000 };
const hosts = [
  { hostUid: 'uid-a', hostName: 'a' },
  { hostUid: 'uid-b', hostName: 'b' },
];
const macB = '52:54:00:00:00:0b';

function setUp(grants: NetbootMemory['grants'] = [grant]) {
  const clock = new VirtualClock();
  const facts: [string, UnexpectedNetboot][] = [];
  let memory: NetbootMemory = { snapshot: { hosts }, grants };
  const watch = new NetbootWatch({
    clock,
    memory: () => memory,
    publish: (hostUid, fact) => facts.push([hostUid, fact]),
    limits: defaultNetbootWatchLimits,
  });
  const sees = (hostUid: HostUid, permitted = false): void =>
    watch.observe({ mac: asMac(macB), hostUid, stage: 'script', permitted, atMs: clock.nowMs() });
  const closeGrants = (): void => {
    memory = { snapshot: { hosts }, grants: [] };
  };
  return { clock, facts, watch, sees, closeGrants };
}

const seen = { mac: asMac(macB), hostUid: 'uid-b', hostName: 'b', time: timestampFromMs(0) };
const ownFact = { ...seen, insteadOfOperationId: '' };
const insteadFact = { ...seen, insteadOfOperationId: 'op-a' };

describe('the watch over netboots', () => {
  test('reports a known host that boots without a grant, once a minute', () => {
    const { clock, facts, sees } = setUp([]);
    sees('uid-b');
    sees('uid-b');
    expect(facts).toEqual([['uid-b', ownFact]]);
    clock.after(60_000, () => {});
    clock.step();
    sees('uid-b');
    expect(facts).toHaveLength(2);
  });

  test('names the host that came instead of the one that was powered on', () => {
    const { clock, facts, sees } = setUp();
    sees('uid-b');
    expect(facts).toEqual([['uid-b', ownFact]]);
    clock.step();
    expect(clock.nowMs()).toBe(120_000);
    expect(facts).toEqual([
      ['uid-b', ownFact],
      ['uid-a', insteadFact],
    ]);
  });

  test('says nothing when the expected host comes too, before or after', () => {
    for (const order of [
      ['uid-a', 'uid-b'],
      ['uid-b', 'uid-a'],
    ]) {
      const { clock, facts, sees } = setUp();
      for (const hostUid of order) sees(hostUid, hostUid === 'uid-a');
      while (clock.step());
      expect(facts).toEqual([['uid-b', ownFact]]);
    }
  });

  test('says nothing when the grant is closed in the meantime', () => {
    const { clock, facts, sees, closeGrants } = setUp();
    sees('uid-b');
    closeGrants();
    while (clock.step());
    expect(facts).toEqual([['uid-b', ownFact]]);
  });

  test('says nothing of permitted boots, of strangers, and after its end', () => {
    const { clock, facts, watch, sees } = setUp();
    sees('uid-a', true);
    watch.observe({ mac: asMac(macB), stage: 'script', permitted: false, atMs: 0 });
    expect(facts).toEqual([]);
    const other = setUp();
    other.sees('uid-b');
    other.watch.stop();
    expect(other.clock.step()).toBe(false);
    expect(clock.step()).toBe(false);
  });
});
