/** The reports of faults of the provisioning network. */
import { asMac } from '@rackwright/dhcp';
import { type agent, RackFaultType as Type } from '@rackwright/messages';
import { beforeEach, expect, test } from 'vitest';
import { AgentNetworkFaults, defaultNetworkFaultLimits } from './network-faults.ts';
import { TestClock } from './session/testing/clock.ts';

let time: TestClock;
let told: agent.NetworkFaults[];
let faults: AgentNetworkFaults;

beforeEach(() => {
  time = new TestClock();
  told = [];
  const { clock } = time.open();
  const tell = (list: agent.NetworkFaults) => told.push(list);
  faults = new AgentNetworkFaults({ clock, report: tell, limits: defaultNetworkFaultLimits });
});

const { spacingMs, declinedMs, exhaustedMs, ofTypeMax } = defaultNetworkFaultLimits;
const mac = asMac('52:54:00:00:00:01');
const foreign = { kind: 'otherServer', serverAddress: '10.0.0.9', atMs: 0 } as const;
const declined = { kind: 'declined', mac, address: '10.0.0.20', atMs: 0 } as const;
const exhausted = { kind: 'noAddressLeft', mac, atMs: 0 } as const;
const grant = {
  hostUid: 'u1',
  operationId: 'u1/1/1/1',
  macs: [mac],
  openedAtMs: 0,
  expiresAtMs: 1,
};
const typesTold = () => told.at(-1)?.faults.map(({ type }) => type);

test('a foreign server, a declined address and a full range are told while they last', async () => {
  faults.dhcp(foreign);
  await time.run(1);
  expect(told.at(-1)?.faults).toMatchObject([{ address: '10.0.0.9' }]);
  faults.dhcp(declined);
  faults.dhcp(exhausted);
  await time.run(spacingMs);
  expect(typesTold()).toEqual([
    Type.FOREIGN_DHCP_SERVER,
    Type.ADDRESS_DECLINED,
    Type.RANGE_EXHAUSTED,
  ]);
  faults.serverGone('10.0.0.9');
  await time.run(exhaustedMs + spacingMs);
  expect(typesTold()).toEqual([Type.ADDRESS_DECLINED]);
  await time.run(declinedMs);
  expect(typesTold()).toEqual([]);
});

test('an unseen host is a fault until it is seen or forgotten', async () => {
  faults.unseen(grant);
  await time.run(1);
  expect(told.at(-1)?.faults).toMatchObject([{ type: Type.BOOT_MAC_NOT_SEEN, mac, hostUid: 'u1' }]);
  faults.noteBootRequest({ mac, hostUid: 'u1' });
  await time.run(spacingMs);
  expect(typesTold()).toEqual([]);
  faults.unseen(grant);
  await time.run(spacingMs);
  faults.forgetHost('u1');
  await time.run(spacingMs);
  expect(typesTold()).toEqual([]);
});

test('a flood of unknown MACs neither grows the list nor is reported at each packet', async () => {
  faults.dhcp(foreign);
  for (let n = 0; n < 6_000; n += 1) {
    const tail = [n >> 8, n & 255].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
    faults.noteBootRequest({ mac: `02:00:00:00:${tail}` });
    if (n % 100 === 0) await time.run(1_000);
  }
  await time.run(spacingMs);
  expect(told.length).toBeLessThanOrEqual(8);
  expect(told.at(-1)?.faults).toHaveLength(1 + ofTypeMax);
  expect(typesTold()).toContain(Type.FOREIGN_DHCP_SERVER);
});

test('a fault that lasts is reported once, and again to each session', async () => {
  for (let n = 0; n < 100; n += 1) {
    faults.dhcp(declined);
    await time.run(5_000);
  }
  expect(told).toHaveLength(1);
  faults.sessionOpened();
  expect(told).toHaveLength(2);
  expect(typesTold()).toEqual([Type.ADDRESS_DECLINED]);
  await time.run(declinedMs);
  expect(typesTold()).toEqual([]);
});
