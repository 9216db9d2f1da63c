/** Machines that are no hosts, from the boot path's question to the answered finding. */

import { create } from '@bufbuild/protobuf';
import { asMac, type Mac } from '@rackwright/dhcp';
import { agent, type HostUid, InventorySchema } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { type BootMemory, bootDecision } from '../boot/index.ts';
import { TestClock } from '../session/testing/clock.ts';
import { AgentDiscovery, type DiscoveryLimits, defaultDiscoveryLimits } from './discovery.ts';

const known = asMac('52:54:00:77:00:01');
const stranger = asMac('52:54:00:99:00:01');
const key = Uint8Array.of(1, 2, 3);
const minuteMs = 60_000;
const host = { hostUid: 'u1', hostName: 'one', macs: [known] };

function rig(limits: Partial<DiscoveryLimits> = {}, bootsMax = 4, bootsPerHourMax = 6) {
  const time = new TestClock();
  const { clock } = time.open();
  const told: agent.Discovered[] = [];
  const hostsFound: [HostUid, number][] = [];
  const discovery = new AgentDiscovery({
    ...{ clock, random: nodeRandom(), log: quietLog, limits },
    onHostFound: (...found) => hostsFound.push(found),
    report: (finding) => told.push(finding),
  });
  const policy = (enabled: boolean) =>
    discovery.replace(
      create(agent.DiscoverySchema, { generation: 1n, enabled, bootsMax, bootsPerHourMax }),
    );
  policy(true);
  return { time, clock, told, hostsFound, discovery, policy };
}

type Rig = ReturnType<typeof rig>;

function memoryOf({ discovery, clock }: { discovery: AgentDiscovery; clock: Clock }): BootMemory {
  const grant = {
    ...{ hostUid: 'u1', operationId: 'u1/1/1/1', bootToken: 'known' },
    openedAtMs: clock.nowMs(),
    expiresAtMs: clock.nowMs() + minuteMs,
  };
  const memory = discovery.memory();
  const snapshot = { generation: 1, hosts: [host] };
  return { snapshot, grants: [grant], ...(memory === undefined ? {} : { discovery: memory }) };
}

function ask(it: Rig, mac = stranger) {
  return bootDecision(memoryOf(it), mac, it.clock.nowMs());
}

/** Asks for the script, as the boot path does; answers with the boot's operation. */
function boot(it: Rig, mac = stranger): string {
  if (ask(it, mac).kind === 'mayDiscover') it.discovery.open(mac);
  const decision = ask(it, mac);
  return decision.kind === 'discovery' ? decision.operationId : '';
}

function find(it: Rig, mac = stranger): string {
  const operationId = boot(it, mac);
  it.discovery.bind(operationId, key);
  it.discovery.reportInventory(operationId, create(InventorySchema), '');
  return operationId;
}

function macOf(n: number): Mac {
  const pair = (byte: number) => byte.toString(16).padStart(2, '0');
  return asMac(`52:54:00:aa:${pair(n >> 8)}:${pair(n & 255)}`);
}

test('no machine boots before the control plane turns discovery on, or after it is off', () => {
  const it = rig();
  expect(ask(it).kind).toBe('mayDiscover');
  it.policy(false);
  expect(ask(it)).toEqual({ kind: 'unknownHost', reason: 'off' });
  const fresh = new AgentDiscovery({
    ...{ clock: it.clock, random: nodeRandom(), log: quietLog, report: () => undefined },
  });
  expect(fresh.memory()).toBeUndefined();
});

test('one boot of a machine is served again until its runner has come up', () => {
  const it = rig();
  const operationId = boot(it);
  expect(boot(it)).toBe(operationId);
  const decision = ask(it);
  if (decision.kind !== 'discovery') throw new Error('no boot');
  const grant = it.discovery.byToken(decision.bootToken);
  expect(grant).toMatchObject({ operationId, hostUid: '', discovery: true, macs: [stranger] });
  expect(it.discovery.bind(operationId, key)).toBe('bound');
  expect(it.discovery.bind(operationId, key)).toBe('bound');
  expect(it.discovery.bind(operationId, Uint8Array.of(9))).toBe('otherKey');
  expect(it.discovery.bind('none', key)).toBe('noGrant');
  expect(ask(it)).toEqual({ kind: 'unknownHost', reason: 'spacing' });
});

test('a machine boots again only after a pause, whether it was found or not', async () => {
  const it = rig();
  find(it);
  await it.time.run(defaultDiscoveryLimits.spacingMs - 1);
  expect(ask(it)).toEqual({ kind: 'unknownHost', reason: 'spacing' });
  await it.time.run(1);
  expect(ask(it).kind).toBe('mayDiscover');
});

test('discovery forgets the token of a boot whose runner did not come in time', async () => {
  const it = rig();
  const operationId = boot(it);
  await it.time.run(defaultDiscoveryLimits.bootWindowMs);
  expect(it.discovery.bind(operationId, key)).toBe('expired');
  expect(ask(it).kind).toBe('mayDiscover');
});

test('a group address or an all-zero MAC gets no boot', () => {
  const it = rig();
  for (const mac of ['01:00:5e:00:00:01', '00:00:00:00:00:00'].map(asMac)) {
    expect(ask(it, mac)).toEqual({ kind: 'unknownHost', reason: 'noMac' });
  }
});

test('the number of boots is limited at once and in an hour', async () => {
  const it = rig();
  for (let n = 0; n < 4; n += 1) expect(boot(it, macOf(n))).not.toBe('');
  expect(ask(it, macOf(9))).toEqual({ kind: 'unknownHost', reason: 'tooManyAtOnce' });
  for (let n = 0; n < 4; n += 1) find(it, macOf(n));
  for (let n = 4; n < 6; n += 1) find(it, macOf(n));
  expect(ask(it, macOf(9))).toEqual({ kind: 'unknownHost', reason: 'tooManyThisHour' });
  await it.time.run(60 * minuteMs);
  expect(ask(it, macOf(9)).kind).toBe('mayDiscover');
});

test('discovery opens no boot and forgets no boot when the clock goes back', () => {
  const it = rig();
  find(it);
  it.time.wallAheadMs -= 24 * 60 * minuteMs;
  expect(ask(it)).toEqual({ kind: 'unknownHost', reason: 'spacing' });
});

test('the limit of boots at once holds after the clock goes back', () => {
  const it = rig({ bootsMax: 2 }, 2, 100);
  const writtenAtMs = it.clock.nowMs();
  it.time.wallAheadMs -= 24 * 60 * minuteMs;
  const asked = (n: number) => {
    return bootDecision({ ...memoryOf(it), writtenAtMs }, macOf(n), it.clock.nowMs()).kind;
  };
  for (const n of [0, 1]) {
    expect(asked(n)).toBe('mayDiscover');
    it.discovery.open(macOf(n), writtenAtMs);
    expect(asked(n)).toBe('discovery');
  }
  expect(asked(2)).toBe('unknownHost');
});

test('a finding is reported in each session and at intervals until it is answered', async () => {
  const it = rig();
  find(it);
  expect(it.told).toHaveLength(1);
  it.discovery.sessionOpened();
  expect(it.told).toHaveLength(2);
  await it.time.run(defaultDiscoveryLimits.repeatMs);
  expect(it.told).toHaveLength(3);
  const [first] = it.told;
  expect(first?.bootMac).toBe(stranger);
  expect(new Set(it.told.map(({ id }) => id)).size).toBe(1);
  it.discovery.receiveAnswer(create(agent.DiscoveredAnswerSchema, { id: first?.id ?? '' }));
  it.discovery.receiveAnswer(create(agent.DiscoveredAnswerSchema, { id: 'other' }));
  await it.time.run(10 * defaultDiscoveryLimits.repeatMs);
  expect(it.told).toHaveLength(3);
  expect(it.discovery.waiting).toBe(0);
});

test('a host that a found machine proves to be is told, with the time of the finding', async () => {
  const it = rig();
  const { HOST, HOST_ELSEWHERE } = agent.DiscoveryRefusalKind;
  const answer = (refusal: agent.DiscoveryRefusalKind, hostUid: HostUid) => {
    const { id = '' } = it.told.at(-1) ?? {};
    it.discovery.receiveAnswer(create(agent.DiscoveredAnswerSchema, { id, refusal, hostUid }));
  };
  find(it, macOf(1));
  answer(HOST_ELSEWHERE, '');
  find(it, macOf(2));
  const foundMs = it.clock.nowMs();
  await it.time.run(defaultDiscoveryLimits.repeatMs / 2);
  answer(HOST, 'u1');
  expect(it.hostsFound).toEqual([['u1', foundMs]]);
});

test('one inventory of a boot is taken, and none of an unknown boot', () => {
  const it = rig();
  const operationId = find(it);
  it.discovery.reportInventory(operationId, create(InventorySchema), '');
  it.discovery.endWithoutInventory(operationId, 'late');
  it.discovery.reportInventory('discovery/other', create(InventorySchema), '');
  expect(it.told).toHaveLength(1);
});

test('the latest findings are kept up to a limit while the control plane is away', () => {
  const it = rig({ findingsMax: 3 }, 100, 100);
  for (let n = 0; n < 5; n += 1) find(it, macOf(n));
  it.told.length = 0;
  it.discovery.sessionOpened();
  expect(it.told.map(({ bootMac }) => bootMac)).toEqual([macOf(2), macOf(3), macOf(4)]);
});

test('remembered MACs are limited; the stream of a runner with a forgotten boot ends', () => {
  const it = rig({ macsMax: 3 }, 100, 100);
  const closed: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    const operationId = find(it, macOf(n));
    it.discovery.addLink(operationId, () => closed.push(macOf(n)));
  }
  expect(closed).toEqual([macOf(0), macOf(1)]);
  expect(it.discovery.memory()?.boots.size).toBe(3);
});

test('a flood of invented MACs costs bounded memory, and known hosts boot meanwhile', () => {
  const limits = { macsMax: 64, bootsMax: 32, bootsPerHourMax: 48 };
  const it = rig(limits, 1_000, 1_000);
  let opened = 0;
  for (let n = 0; n < 50_000; n += 1) {
    const mac = macOf(n & 0xffff);
    if (ask(it, mac).kind === 'mayDiscover') {
      it.discovery.open(mac);
      opened += 1;
    }
    if (n % 500 === 0) expect(ask(it, known)).toMatchObject({ kind: 'runner', hostUid: 'u1' });
  }
  expect(opened).toBe(limits.bootsMax);
  expect(it.discovery.memory()?.boots.size).toBe(limits.bootsMax);
  expect(ask(it, known)).toMatchObject({ kind: 'runner', bootToken: 'known' });
});

test('a boot that was opened while the clock was behind lives no longer than another', async () => {
  const it = rig({ bootWindowMs: minuteMs });
  const dayMs = 24 * 60 * minuteMs;
  it.discovery.open(stranger, it.clock.nowMs() + dayMs);
  const [opened] = it.discovery.memory()?.boots.values() ?? [];
  await it.time.run(minuteMs);
  expect(it.discovery.bind(opened?.operationId ?? '', key)).toBe('expired');
});
