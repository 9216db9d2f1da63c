/** A network card that the host's BMC has and its rack's network has not (DESIGN §9). */
import { BootStepKind, FailureType, HostGoal, RackFaultType, RunPhase } from '@rackwright/messages';
import { readDescription, writeDescription } from '@rackwright/sim/machine';
import { expect, test } from 'vitest';
import type { MachinePlan } from './machines.ts';
import { shortPauses } from './pauses.ts';
import { Rack } from './rack.ts';

const mac = '52:54:00:00:00:01';
const machine: MachinePlan = {
  ...{ name: 'h1', bmcAddress: '127.0.0.21', mac, serial: 'SN-1' },
  uuid: '0102030405060708090a0b0c0d0e0f10',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};

test('a boot MAC that is not seen fails the boot, and is a fault of the rack', async () => {
  const rack = await Rack.start({
    machines: [machine],
    goal: HostGoal.MANAGEABLE,
    // Longer than a software machine takes to boot, on a busy computer too.
    controlplane: { engine: { ...shortPauses, goalFailuresMax: 1, bootTimeoutMs: 30_000 } },
  });
  try {
    await rack.untilHost('h1', 'verified', ({ status }) => status?.run?.phase === RunPhase.ENDED);
    const [folder] = rack.machines;
    if (folder === undefined) throw new Error('no machine');
    const description = readDescription(folder.folder);
    // Its card is on another network: what asks here has another address.
    writeDescription(folder.folder, { ...description, mac: '52:54:00:00:00:77' });
    const name = 'hosts/h1';
    await rack.clients.hosts.inspectHost({ name });
    const failed = await rack.untilHost(
      'h1',
      'failed',
      ({ status }) => status?.run?.number === 2n && status.run.phase === RunPhase.ENDED,
    );
    const failure = failed.status?.lastError?.failure;
    expect(failure?.type).toBe(FailureType.DEADLINE);
    expect(failure?.details?.kind).toMatchObject({ value: { missing: BootStepKind.DISCOVER } });
    const seen = async () =>
      (await rack.clients.racks.getRack({ name: 'racks/r1' })).status?.faults;
    await expect
      .poll(seen, { timeout: 60_000, interval: 500 })
      .toMatchObject([{ type: RackFaultType.BOOT_MAC_NOT_SEEN, mac, host: name }]);
    const told = await rack.clients.hosts.explainHost({ name });
    expect(told.unblock.join('\n')).toContain(`${mac} of hosts/h1 has link`);
    writeDescription(folder.folder, description);
    await rack.clients.hosts.inspectHost({ name });
    await expect.poll(seen, { timeout: 120_000, interval: 500 }).toEqual([]);
  } finally {
    await rack.stop();
  }
}, 300_000);
