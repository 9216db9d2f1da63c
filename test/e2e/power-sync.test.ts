/** Somebody at the rack: power buttons, cables and passwords, found by looks between operations. */
import {
  BmcProtocol,
  BmcReadKind,
  FailureType,
  HealthLevel,
  type Host,
  HostGoal,
  HostState,
  hasFault,
  RunPhase,
} from '@rackwright/messages';
import { SoftwareMachine } from '@rackwright/sim/machine';
import { type RedfishBmc, startRedfishBmc } from '@rackwright/sim/redfish';
import { expect, test } from 'vitest';
import { bmcPassword, type MachinePlan } from './machines.ts';
import { programOf } from './programs.ts';
import { eventually, Rack } from './rack.ts';

const plan: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};
/** The shortest that a rack may have. */
const periodSeconds = 10;
/** A look comes somewhere in each period. */
const oneLookMs = periodSeconds * 1_000 + 2_000;
/** Within which it is found on a busy machine, too. */
const foundMs = 4 * periodSeconds * 1_000;
const name = 'hosts/h1';

interface Site {
  readonly rack: Rack;
  readonly machine: SoftwareMachine;
  readonly bmc: RedfishBmc;
}

/** A host that is available behind a Redfish BMC. */
async function openSite(): Promise<Site> {
  const rack = await Rack.start({ machines: [plan], goal: HostGoal.MANAGEABLE });
  const folder = rack.machines[0]?.folder ?? '';
  const machine = new SoftwareMachine({ folder, program: programOf('machine') });
  const uuid = plan.uuid.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
  const bmc = await startRedfishBmc({
    user: 'admin',
    password: bmcPassword,
    identity: { uuid, serial: plan.serial, manufacturer: 'Software', model: 'Machine' },
    machine: {
      powerOn: ({ device }) => machine.powerOn(device === 'pxe' ? 'network' : 'disk'),
      powerOff: () => machine.powerOff(),
      isOn: () => machine.isOn(),
    },
    habits: { powerDelayMs: [50, 200], mode: 'Legacy', bootTargets: ['None', 'Pxe', 'Hdd'] },
    sensors: { temperatures: [{ name: 'Inlet', reading: 31, health: 'Warning' }] },
    logEntries: 90,
  });
  const { hosts, racks } = rack.clients;
  await racks.updateRack({
    rack: { name: 'racks/r1', spec: { powerSyncSeconds: periodSeconds } },
    updateMask: { paths: ['spec.power_sync_seconds'] },
  });
  await rack.untilHost('h1', 'verified', ({ status }) => status?.state === HostState.MANAGEABLE);
  const { address, port } = bmc;
  const protocol = BmcProtocol.REDFISH;
  await hosts.updateHost({
    host: {
      name,
      spec: {
        bmc: { address, port, protocol, credential: 'credentials/bmc' },
        goal: HostGoal.AVAILABLE,
      },
    },
    updateMask: { paths: ['spec.bmc', 'spec.goal'] },
  });
  return { rack, machine, bmc };
}

function untilAvailable({ rack }: Site) {
  return rack.untilHost('h1', 'available', ({ status }) => {
    return status?.state === HostState.AVAILABLE && status.run?.phase === RunPhase.ENDED;
  });
}

/** Waits for so many more looks of the agent at the power of the machine. */
async function looksAgain({ bmc }: Site, count: number): Promise<void> {
  const looks = () =>
    bmc.calls().filter(({ method, path }) => method === 'GET' && /\/Systems\/[^/]+$/.test(path))
      .length;
  const before = looks();
  await eventually(`${count} more looks at the power`, () => {
    expect(looks()).toBeGreaterThanOrEqual(before + count);
  });
}

/** Commands that switch or arm something; questions and sign-ins are none. */
function commandsOf({ bmc }: Site): number {
  return bmc.calls().filter(({ method, path }) => method !== 'GET' && !path.includes('/Sessions'))
    .length;
}

async function timelineOf({ rack }: Site): Promise<string[]> {
  const { revisions } = await rack.clients.hosts.listHostRevisions({ name, pageSize: 64 });
  return revisions.map(({ cause }) => cause);
}

/** What a BMC says is read when it is asked for; that its hardware is critical shows by itself. */
async function readsTheBmc({ rack, bmc }: Site): Promise<void> {
  const { hosts } = rack.clients;
  const read = (kind: BmcReadKind) => hosts.readHostBmc({ name, kind, maxEntries: 2 });
  expect(await read(BmcReadKind.SENSORS)).toMatchObject({
    complete: true,
    health: { level: HealthLevel.OK },
    sensors: [{ name: 'Inlet', reading: 31, unit: 'Cel', health: HealthLevel.WARNING }],
  });
  const { logEntries } = await read(BmcReadKind.LOG);
  expect(logEntries.map(({ id }) => id)).toEqual(['90', '89']);
  await expect(hosts.readHostBmc({ name, kind: 99 as BmcReadKind })).rejects.toThrow(/kind/);
  bmc.setHealth('Critical');
  const isCritical = ({ status }: Host): boolean =>
    hasFault(status?.faults ?? [], 'hardwareCritical');
  await rack.untilHost('h1', 'critical', isCritical);
  bmc.setHealth('OK');
  await rack.untilHost('h1', 'well', (host) => !isCritical(host));
}

/** A new certificate gets no password until a person has pinned it, by what `explain` advises. */
async function pinsAnother({ rack, bmc }: Site): Promise<void> {
  const { hosts } = rack.clients;
  const shown = await bmc.replaceCertificate();
  const asked = bmc.calls().length;
  const isMistrusted = ({ status }: Host): boolean =>
    hasFault(status?.faults ?? [], 'bmcCertificate');
  await rack.untilHost('h1', 'mistrusted', isMistrusted);
  const told = await hosts.explainHost({ name });
  expect(told.causes.map(({ text }) => text).join()).toContain(`shown ${shown}`);
  await hosts.verifyHost({ name });
  await rack.untilHost('h1', 'refused', ({ status }) => {
    return status?.lastError?.failure?.type === FailureType.CERTIFICATE_MISMATCH;
  });
  const advice = (await hosts.explainHost({ name })).unblock.join('\n');
  expect(advice).toContain(`rackwright host update h1 --bmc-certificate ${shown}`);
  expect(bmc.calls()).toHaveLength(asked);
  await hosts.updateHost({
    host: { name, spec: { bmc: { certificateSha256: shown } } },
    updateMask: { paths: ['spec.bmc.certificate_sha256'] },
  });
  await rack.untilHost('h1', 'trusted', (host) => {
    return !isMistrusted(host) && host.status?.bmcIdentity?.certificateSha256 === shown;
  });
}

test('a power button and a silent BMC are found within a period, and cleared by themselves', {
  timeout: 600_000,
}, async () => {
  const site = await openSite();
  const { rack, machine, bmc } = site;
  try {
    const before = await untilAvailable(site);
    const epoch = before.status?.useEpoch ?? 0n;
    const commands = commandsOf(site);

    // Looks alone change nothing, at the BMC or in the record.
    await looksAgain(site, 2);
    expect(commandsOf(site)).toBe(commands);
    expect((await rack.clients.hosts.getHost({ name })).etag).toBe(before.etag);

    await readsTheBmc(site);

    machine.powerOn('disk');
    const pressedMs = Date.now();
    await rack.untilHost('h1', 'no longer certified', ({ status }) => {
      return (status?.useEpoch ?? 0n) > epoch;
    });
    expect(Date.now() - pressedMs).toBeLessThan(foundMs);
    expect((await timelineOf(site)).join('\n')).toContain('seen switched on without an order');
    const again = await untilAvailable(site);
    expect(again.status?.lastCleaned?.at).not.toEqual(before.status?.lastCleaned?.at);

    bmc.setFault({ kind: 'silent', how: 'drop' });
    const silent = await rack.untilHost('h1', 'with a silent BMC', ({ status }) => {
      return hasFault(status?.faults ?? [], 'bmcUnreachable');
    });
    expect(silent.status?.state).toBe(HostState.AVAILABLE);
    const told = await rack.clients.hosts.explainHost({ name });
    expect(told.blocker).toBe('the BMC');
    // Nobody hears a look at a BMC that drops everything: at least one comes in this time.
    await new Promise((resolve) => setTimeout(resolve, oneLookMs));
    expect((await rack.clients.hosts.getHost({ name })).etag).toBe(silent.etag);
    bmc.setFault({ kind: 'none' });
    const well = await rack.untilHost('h1', 'well again', ({ status }) => {
      return status?.faults.length === 0;
    });
    expect(well.status).toMatchObject({
      state: HostState.AVAILABLE,
      useEpoch: again.status?.useEpoch,
    });

    await pinsAnother(site);

    bmc.setFault({ kind: 'wrongPassword' });
    await rack.untilHost('h1', 'refused', ({ status }) => {
      return hasFault(status?.faults ?? [], 'bmcAuthentication');
    });
    const { length } = bmc.calls().filter(({ status }) => status === 401);
    await new Promise((resolve) => setTimeout(resolve, oneLookMs));
    expect(bmc.calls().filter(({ status }) => status === 401)).toHaveLength(length);
  } catch (error) {
    throw new Error(`${String(error)}\n${rack.logs()}`, { cause: error });
  } finally {
    machine.powerOff();
    await bmc.close();
    await rack.stop();
  }
});
