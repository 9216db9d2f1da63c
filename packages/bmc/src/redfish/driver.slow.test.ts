import type { RedfishFault, RedfishHabits } from '@rackwright/sim/redfish';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { BmcResult } from '../driver.ts';
import {
  type DriverChanges,
  driverFor,
  machineIdentity,
  password,
  type SimulatedHost,
  startHost,
} from './rig.fixture.ts';

const hosts: SimulatedHost[] = [];

afterEach(async () => {
  await Promise.all(hosts.splice(0).map(({ bmc }) => bmc.close()));
});

async function setUp(
  habits: Partial<RedfishHabits> = {},
  changes: DriverChanges = {},
  others: Parameters<typeof startHost>[0] = {},
) {
  const host = await startHost({ habits, ...others });
  hosts.push(host);
  return { host, bmc: host.bmc, driver: driverFor(host.bmc, changes) };
}

const network = { device: 'network', firmware: 'uefi' } as const;

function resets(bmc: SimulatedHost['bmc']) {
  return bmc.calls().filter(({ path }) => path.endsWith('/ComputerSystem.Reset'));
}

/** Kind, type or reason, and the words: what a test compares. */
function gist(result: BmcResult<unknown>): string {
  switch (result.kind) {
    case 'ok':
      return 'ok';
    case 'failed':
      return `${result.type}: ${result.message} (${result.backendText})`;
    case 'transient':
      return `${result.reason}: ${result.message} (${result.backendText})`;
  }
}

describe('signing in', () => {
  test('is by a session, which is given back', async () => {
    const { driver, bmc } = await setUp();
    expect(gist(await driver.powerState())).toBe('ok');
    const calls = bmc.calls().map(({ method, path }) => `${method} ${path}`);
    expect(calls[1]).toBe('POST /redfish/v1/SessionService/Sessions');
    expect(calls.at(-1)).toBe('DELETE /redfish/v1/SessionService/Sessions/1');
  });

  test('gives the session back after an act that failed, too', async () => {
    const { driver, bmc } = await setUp({ resetTypes: ['Nmi'] });
    expect(gist(await driver.setPower('on'))).toContain('unsupported');
    const calls = bmc.calls().map(({ method, path }) => `${method} ${path}`);
    expect(calls.at(-1)).toBe('DELETE /redfish/v1/SessionService/Sessions/1');
  });

  test('gives the session back after a call that was given up', async () => {
    const { driver, bmc } = await setUp();
    await driver.powerState();
    const before = bmc.calls().length;
    bmc.setFault({ kind: 'slow', delayMs: 300 });
    const signal = AbortSignal.timeout(800);
    expect(gist(await driver.powerState(signal))).toContain('cancelled');
    const calls = bmc.calls().slice(before);
    expect(calls.map(({ method }) => method)).toEqual(['GET', 'POST', 'GET', 'DELETE']);
  });

  test('falls back to basic authentication where there are no sessions', async () => {
    const { driver } = await setUp({ sessionsMax: 0 });
    expect(gist(await driver.setPower('on'))).toBe('ok');
  });

  test('is by basic authentication where even the root is guarded', async () => {
    const { driver, bmc } = await setUp({ guardsRoot: true, sessionsMax: 0 });
    expect(gist(await driver.setPower('on'))).toBe('ok');
    expect(bmc.calls().filter(({ method }) => method === 'POST')).toHaveLength(1);
    const wrong = driverFor(bmc, { target: { password: 'something else' } });
    const before = bmc.calls().length;
    expect(gist(await wrong.powerState())).toContain('authentication');
    expect(bmc.calls()).toHaveLength(before + 2);
  });

  test('falls back to basic authentication when all sessions are taken', async () => {
    const { driver, bmc } = await setUp({ sessionsMax: 1 });
    const { address, port } = bmc;
    const other = driverFor({ address, port });
    const [one, two] = await Promise.all([other.setPower('on'), driver.powerState()]);
    expect([gist(one), gist(two)]).toEqual(['ok', 'ok']);
  });

  test('is tried once with a password that is refused', async () => {
    const { driver, bmc } = await setUp({}, { target: { password: 'something else' } });
    expect(gist(await driver.powerState())).toContain('authentication: the BMC does not accept');
    expect(bmc.calls().filter(({ status }) => status === 401)).toHaveLength(1);
  });

  test('says that the account is locked when the BMC says so', async () => {
    const { driver, bmc } = await setUp();
    bmc.setFault({ kind: 'lockedOut', forMs: 60_000 });
    const text = gist(await driver.powerState());
    expect(text).toContain('lockedOut: the BMC has locked the account: wait');
    expect(text).toContain('the account is locked for 60 s');
  });
});

describe('faults of the BMC', () => {
  const faults: readonly (readonly [RedfishFault, string])[] = [
    [{ kind: 'wrongPassword' }, 'authentication: the BMC does not accept user and password'],
    [{ kind: 'rubbish' }, 'protocol: what answers is no Redfish service'],
    [{ kind: 'silent', how: 'drop' }, 'unreachable: the BMC does not answer'],
    [{ kind: 'slow', delayMs: 100 }, 'ok'],
  ];
  for (const [fault, text] of faults) {
    test(`a BMC with the fault ${fault.kind} ends in "${text}"`, async () => {
      const { driver, bmc } = await setUp();
      bmc.setFault(fault);
      for (const result of [await driver.powerState(), await driver.setBootOverride(network)]) {
        expect(gist(result)).toContain(text);
        expect(JSON.stringify(result)).not.toContain(password);
      }
    });
  }

  test('an answer that is not Redfish is named', async () => {
    const { driver, bmc } = await setUp();
    bmc.setFault({ kind: 'rubbish' });
    const begins = 'text/html; charset=utf-8, beginning "<!DOCTYPE html><html><head><title>Manage';
    expect(gist(await driver.readIdentity())).toContain(begins);
  });

  test('a BMC that is well again is used again', async () => {
    const { driver, bmc } = await setUp();
    bmc.setFault({ kind: 'rubbish' });
    expect((await driver.powerState()).kind).toBe('failed');
    bmc.setFault({ kind: 'none' });
    expect(gist(await driver.powerState())).toBe('ok');
  });
});

describe('the certificate', () => {
  test('is accepted when it is the pinned one', async () => {
    const { bmc } = await setUp();
    const { certificateSha256 } = bmc;
    expect(gist(await driverFor(bmc, { target: { certificateSha256 } }).powerState())).toBe('ok');
  });

  test('is refused when it is another, before anything is sent', async () => {
    const { bmc } = await setUp();
    const certificateSha256 = 'ab'.repeat(32);
    const result = await driverFor(bmc, { target: { certificateSha256 } }).powerState();
    expect(gist(result)).toContain('certificate: the BMC shows another certificate');
    expect(gist(result)).toContain(`shown ${bmc.certificateSha256}`);
    expect(bmc.calls()).toEqual([]);
  });
});

describe('the boot override', () => {
  test('reaches the machine, once', async () => {
    const { driver, host } = await setUp();
    expect(gist(await driver.setBootOverride(network))).toBe('ok');
    await driver.setPower('on');
    expect(host.bootedFrom()).toEqual({ device: 'pxe', mode: 'uefi' });
    await driver.setPower('off');
    await driver.setPower('on');
    expect(host.bootedFrom()).toEqual({ device: 'none', mode: 'uefi' });
  });

  test('is UEFI HTTP where that is the only way, and where it is wanted', async () => {
    const only = await setUp({ bootTargets: ['None', 'Hdd', 'UefiHttp'] });
    await only.driver.setBootOverride(network);
    await only.driver.setPower('on');
    expect(only.host.bootedFrom()?.device).toBe('uefiHttp');
    const wanted = await setUp({}, { options: { networkBoot: 'http' } });
    await wanted.driver.setBootOverride(network);
    await wanted.driver.setPower('on');
    expect(wanted.host.bootedFrom()?.device).toBe('uefiHttp');
  });

  test('is refused when the BMC offers no such source', async () => {
    const { driver } = await setUp({ bootTargets: ['None', 'Hdd'] });
    expect(gist(await driver.setBootOverride(network))).toContain('it offers None, Hdd');
  });

  test('leaves legacy or UEFI as it is, or sets it', async () => {
    const found = await setUp({ mode: 'Legacy' });
    await found.driver.setBootOverride(network);
    await found.driver.setPower('on');
    expect(found.host.bootedFrom()?.mode).toBe('legacy');
    const asked = await setUp({ mode: 'Legacy' }, { options: { bootMode: 'asAsked' } });
    await asked.driver.setBootOverride(network);
    await asked.driver.setPower('on');
    expect(asked.host.bootedFrom()?.mode).toBe('uefi');
  });

  test('may read back as Continuous only where the vendor table says so', async () => {
    const plain = await setUp({ onceReadsBackAs: 'Continuous' });
    expect(gist(await plain.driver.setBootOverride(network))).toContain(
      'set Once Pxe, read Continuous Pxe UEFI',
    );
    const manufacturer = 'Rackwright';
    const identity = { ...machineIdentity, manufacturer };
    const listed = await setUp({ onceReadsBackAs: 'Continuous' }, {}, { identity });
    expect(await listed.driver.setBootOverride(network)).toEqual({
      kind: 'ok',
      value: {
        changed: true,
        notes: ['Rackwright simulation: set Once Pxe, read Continuous Pxe UEFI'],
      },
    });
  });

  test('is taken away where a service wants a target for that, too', async () => {
    for (const bootTargets of [
      ['None', 'Pxe', 'Hdd'],
      ['Pxe', 'Hdd'],
    ] as const) {
      const { driver, host } = await setUp({ needsBootTarget: true, bootTargets });
      expect(gist(await driver.setBootOverride(network))).toBe('ok');
      const none = await driver.setBootOverride({ device: 'none', firmware: 'uefi' });
      expect(gist(none)).toBe('ok');
      await driver.setPower('on');
      expect(host.bootedFrom()).toEqual({ device: 'none', mode: 'uefi' });
    }
  });

  const tags: readonly (readonly [string, Partial<RedfishHabits>])[] = [
    ['goes with the ETag where it has to', { needsIfMatch: true }],
    ['goes with a weak ETag', { etags: 'weak', needsIfMatch: true }],
    ['goes with the strong form', { etags: 'weak', needsIfMatch: true, comparesStrongly: true }],
    ['goes without an ETag', { etags: 'none' }],
    ['goes with any, where one is asked for and none given', { etags: 'none', needsIfMatch: true }],
  ];
  for (const [name, habits] of tags) {
    test(name, async () => {
      const { driver } = await setUp(habits);
      expect(gist(await driver.setBootOverride(network))).toBe('ok');
    });
  }
});

describe('the event log', () => {
  test('is cleared and seen to be cleared, and left alone when it is empty', async () => {
    const { driver } = await setUp({}, {}, { logEntries: 12 });
    expect(await driver.clearEventLog()).toMatchObject({ kind: 'ok', value: { changed: true } });
    const { driver: ofEmpty } = await setUp();
    expect(await ofEmpty.clearEventLog()).toMatchObject({ kind: 'ok', value: { changed: false } });
  });

  test('a log that is not cleared after all is not called cleared', async () => {
    const { driver } = await setUp({}, {}, { logEntries: 12, fault: { kind: 'yesButNothing' } });
    expect(gist(await driver.clearEventLog())).toContain('notApplied');
  });
});

describe('power', () => {
  test('takes its reset types from the resource that tells them', async () => {
    const { driver, host } = await setUp({
      resetTypesIn: 'actionInfo',
      resetTypes: ['ForceOn', 'ForceOff'],
    });
    expect(gist(await driver.setPower('on'))).toBe('ok');
    expect(host.isOn()).toBe(true);
  });

  test.each(['redirect', 'tooManyBytes', 'gatewayTimeout'] as const)(
    'counts by what is read back where %s is the answer',
    async (by) => {
      const { driver, host } = await setUp({}, {}, { fault: { kind: 'answersOddly', by } });
      expect(gist(await driver.setPower('on'))).toBe('ok');
      expect(host.isOn()).toBe(true);
    },
  );

  test('goes off by an order that comes while the system is being switched on', async () => {
    const { driver, bmc, host } = await setUp({
      showsTransitions: true,
      powerDelayMs: [300, 300],
    });
    const on = driverFor(bmc).setPower('on');
    await vi.waitFor(() => expect(resets(bmc)).toHaveLength(1));
    expect(await driver.setPower('off')).toMatchObject({ value: { changed: true } });
    expect(resets(bmc)).toHaveLength(2);
    expect(host.isOn()).toBe(false);
    expect(gist(await on)).toContain('notApplied');
    expect(host.isOn()).toBe(false);
  });

  test('never presses a button that turns either way, nor asks the system', async () => {
    const { driver } = await setUp({ resetTypes: ['On', 'PushPowerButton', 'GracefulShutdown'] });
    await driver.setPower('on');
    expect(gist(await driver.setPower('off'))).toContain(
      'unsupported: the BMC cannot switch the system off at once',
    );
  });

  test('is busy while it rests after power off', async () => {
    const { driver } = await setUp({ restMs: 60_000 });
    await driver.setPower('on');
    await driver.setPower('off');
    expect(gist(await driver.setPower('on'))).toContain('busy: the BMC is busy (409)');
  });
});

test('identity of a Dell is its service tag', async () => {
  const identity = { ...machineIdentity, manufacturer: 'Dell Inc.', sku: 'ABC1234' };
  const { driver } = await setUp({}, {}, { identity });
  const read = await driver.readIdentity();
  expect(read).toMatchObject({ value: { serial: 'ABC1234', boardSerial: 'HOST-0001' } });
});

test.each([1, 1_000])(
  'inventory lists all parts of a BMC that lists %d on a page',
  async (membersPerPage) => {
    const inventory = {
      processors: [{ manufacturer: 'Maker', model: 'Fast', cores: 8, threads: 16 }],
      memory: [{ capacityMiB: 8_192, serial: 'MEM-1' }],
      interfaces: [{ mac: '52:54:00:00:00:01', speedMbps: 1_000 }, { mac: '52:54:00:00:00:02' }],
      drives: [
        {
          serial: 'DRV-1',
          model: 'Round',
          manufacturer: 'Maker',
          capacityBytes: 1_000_000_000,
          media: 'SSD',
          protocol: 'NVMe',
          firmware: 'FW-2',
        },
      ],
    } as const;
    const parts = { inventory: { ...inventory, emptyBays: 2 } };
    const { driver } = await setUp({ membersPerPage }, {}, parts);
    const drives = inventory.drives.map((drive) => ({ ...drive, name: 'Drive 1' }));
    const memory = inventory.memory.map((module) => ({ ...module, slot: 'DIMM 1' }));
    const interfaces = [
      { name: '1', mac: '52:54:00:00:00:01', speedMbps: 1_000, linkUp: true },
      { name: '2', mac: '52:54:00:00:00:02', linkUp: false },
    ];
    const firmware = [
      { name: 'BIOS', version: '1.0.0' },
      { name: 'BMC', version: '1.0.0' },
    ];
    const all = ['processors', 'memory', 'drives', 'interfaces', 'firmware'] as const;
    expect(await driver.readInventory(all)).toEqual({
      kind: 'ok',
      value: { ...inventory, drives, memory, interfaces, firmware, complete: true },
    });
    expect(await driver.readInventory(['drives'])).toEqual({
      kind: 'ok',
      value: { processors: [], memory: [], drives, interfaces: [], firmware: [], complete: true },
    });
  },
);
