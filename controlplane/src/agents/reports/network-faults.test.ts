/** Faults of a provisioning network: from the agent to the rack, its hosts and people. */
import { type agent, RackFaultType as Type, store as wire } from '@rackwright/messages';
import { keySegment, storeKey } from '@rackwright/store';
import { expect, test } from 'vitest';
import { explainRack } from '../../host/index.ts';
import { connectAgent, type PlainAgent } from '../../host/testing/plain-agent.ts';
import { type Rig, rigWith } from '../../host/testing/rig.ts';

type NetworkFaultInit = Partial<Pick<agent.NetworkFault, 'type' | 'mac' | 'address' | 'hostUid'>>;

async function started() {
  const rig = rigWith({});
  const replica = await rig.replica();
  const plain = await connectAgent(rig, replica);
  return { rig, replica, plain };
}

async function tell(
  rig: Rig,
  plain: PlainAgent,
  faults: readonly NetworkFaultInit[],
): Promise<void> {
  await plain.say({ case: 'networkFaults', value: { faults: [...faults] } });
  await rig.advance(6_000);
  await plain.heartbeat();
}

const faultsOf = (rig: Rig) => rig.rack()?.rack?.status?.faults ?? [];
const foreign = { type: Type.FOREIGN_DHCP_SERVER, address: '10.0.0.9' };

test('each fault stands at the rack with its text and advice until it is over', async () => {
  const { rig, plain } = await started();
  const declined = { type: Type.ADDRESS_DECLINED, mac: '52:54:00:00:00:01', address: '10.0.0.20' };
  const unseen = { type: Type.BOOT_MAC_NOT_SEEN, mac: '52:54:00:00:00:01', hostUid: 'u1' };
  await tell(rig, plain, [foreign]);
  const [first] = faultsOf(rig);
  expect(first?.message).toContain('another DHCP server, 10.0.0.9,');
  await tell(rig, plain, [declined, foreign, unseen]);
  expect(faultsOf(rig)).toMatchObject([declined, first ?? {}, { host: 'hosts/h1' }]);
  const record = rig.rack();
  const told = record && explainRack(record, true, []);
  expect(told?.causes.map(({ text }) => text)).toEqual(
    expect.arrayContaining(faultsOf(rig).map(({ message }) => message)),
  );
  expect(told?.unblock.join('\n')).toContain('take the DHCP server 10.0.0.9 off');
  await tell(rig, plain, []);
  expect(faultsOf(rig)).toEqual([]);
});

test('an unknown MAC counts only if a host of another rack has it, and names no host', async () => {
  const { rig, plain } = await started();
  rig.addRack('r2');
  rig.addHost(2, { rack: 'racks/r2' });
  await rig.advance(1_000);
  const key = storeKey('reservations', 'mac', keySegment('52:54:00:00:00:02'));
  rig.put(key, wire.ReservationSchema, { holder: 'hosts/h2', holderUid: 'u2' });
  const strange = (last: string) => ({
    type: Type.MAC_OF_OTHER_RACK,
    mac: `52:54:00:00:00:${last}`,
  });
  await tell(rig, plain, [strange('01'), strange('02'), strange('03')]);
  expect(faultsOf(rig)).toMatchObject([{ mac: '52:54:00:00:00:02', host: '' }]);
  expect(faultsOf(rig)[0]?.message).not.toContain('h2');
});

test('invented faults of an agent are bounded, and name only hosts of its own rack', async () => {
  const { rig, plain } = await started();
  const long = 'x'.repeat(100_000);
  await tell(rig, plain, [
    { ...foreign, address: long },
    { ...foreign, mac: long },
    { type: Type.BOOT_MAC_NOT_SEEN, hostUid: 'u9' },
    { type: 99 as Type },
    ...Array.from({ length: 500 }, (_, n) => ({
      ...foreign,
      address: `10.0.${n >> 8}.${n & 255}`,
    })),
  ]);
  expect(faultsOf(rig)).toHaveLength(28);
});

test('an agent that changes its report all the time does not cause a write each time', async () => {
  const { rig, plain } = await started();
  const before = rig.lastRevision();
  for (let n = 0; n < 50; n += 1) {
    await plain.say({ case: 'networkFaults', value: { faults: n % 2 === 0 ? [foreign] : [] } });
    await plain.heartbeat();
  }
  expect(rig.lastRevision() - before).toBeLessThanOrEqual(5);
  expect(faultsOf(rig)).toHaveLength(1);
});
