/** Settings of the firmware and the boot order, with the simulated BMC over real sockets. */
import type { RedfishBios } from '@rackwright/sim/redfish';
import { afterEach, describe, expect, test } from 'vitest';
import type { BmcResult } from '../driver.ts';
import { driverFor, readBack, startHost } from './rig.fixture.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

const bios: RedfishBios = {
  attributes: { Threads: 'Enabled', Cores: 8, Wake: false, AdminPassword: 'leaked', Tag: 'x' },
  registry: [
    {
      AttributeName: 'Threads',
      Type: 'Enumeration',
      Value: [{ ValueName: 'Enabled' }, { ValueName: 'Disabled' }],
    },
    { AttributeName: 'Cores', Type: 'Integer', LowerBound: 1, UpperBound: 64 },
    { AttributeName: 'Wake', Type: 'Boolean' },
    { AttributeName: 'Tag', Type: 'String', ReadOnly: true },
  ],
  bootOptions: [
    { id: 'Boot0001', name: 'Disk' },
    { id: 'Boot0002', name: 'Network' },
    { id: 'Boot0003', name: 'CD' },
  ],
};

async function start(changes: Parameters<typeof startHost>[0] = {}) {
  const host = await startHost({ bios, ...changes });
  closers.push(() => host.bmc.close());
  const settle = { windowMs: 300, pollMs: 50 };
  const driver = driverFor(host.bmc, { parts: { readBack, settle } });
  const boot = async () => {
    for (const state of ['off', 'on'] as const) value(await driver.setPower(state));
  };
  return { bmc: host.bmc, driver, boot };
}

function value<T>(result: BmcResult<T>): T {
  if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
  return result.value;
}

function typeOf(result: BmcResult<unknown>): string {
  return result.kind === 'failed' ? result.type : result.kind;
}

const wanted = new Map([
  ['Threads', 'Disabled'],
  ['Cores', '16'],
  ['Wake', 'true'],
]);

describe('settings of the firmware', () => {
  test('are listed with what waits, and no password is shown', async () => {
    const { driver } = await start();
    value(await driver.stageBios(new Map([['Cores', '16']])));
    expect(value(await driver.readBios())).toEqual({
      complete: true,
      settings: [
        { name: 'AdminPassword', current: '' },
        { name: 'Cores', current: '8', pending: '16' },
        { name: 'Tag', current: 'x' },
        { name: 'Threads', current: 'Enabled' },
        { name: 'Wake', current: 'false' },
      ],
    });
  });

  test.each([
    {},
    { etags: 'weak', comparesStrongly: true },
    { needsIfMatch: true },
    { etags: 'none' },
  ] as const)('wait for a boot, are taken by it, and are not told twice: %o', async (habits) => {
    const { driver, bmc, boot } = await start({ habits });
    expect(value(await driver.stageBios(wanted)).changed).toBe(true);
    expect(bmc.bios()).toMatchObject({ Threads: 'Enabled' });
    expect(typeOf(await driver.checkBios(wanted))).toBe('stillPending');
    const patches = () => bmc.calls().filter(({ method }) => method === 'PATCH').length;
    const before = patches();
    expect(value(await driver.stageBios(wanted)).changed).toBe(true);
    expect(patches()).toBe(before);
    await boot();
    expect(value(await driver.checkBios(wanted))).toMatchObject({ changed: false });
    expect(bmc.bios()).toMatchObject({ Threads: 'Disabled', Cores: 16, Wake: true });
    expect(value(await driver.stageBios(wanted)).changed).toBe(false);
    expect(patches()).toBe(before);
  });

  test('settings that wait for the next boot are taken back by what holds now', async () => {
    const { driver, bmc, boot } = await start();
    value(await driver.stageBios(wanted));
    const back = new Map([['Cores', '8']]);
    expect(value(await driver.stageBios(back)).changed).toBe(true);
    await boot();
    expect(bmc.bios()).toMatchObject({ Cores: 8, Threads: 'Disabled' });
  });

  const refusals: readonly (readonly [string, string, string])[] = [
    ['NoSuch', '1', 'settingUnknown'],
    ['constructor', '1', 'settingUnknown'],
    ['Threads', 'Sometimes', 'settingRefused'],
    ['Cores', '65', 'settingRefused'],
    ['Cores', '016', 'settingRefused'],
    ['Wake', 'yes', 'settingRefused'],
    ['Tag', 'y', 'settingRefused'],
    ['AdminPassword', 'new', 'settingRefused'],
  ];
  test.each(refusals)('%s=%s is refused before anything is told: %s', async (name, text, type) => {
    const { driver, bmc } = await start();
    expect(typeOf(await driver.stageBios(new Map([[name, text]])))).toBe(type);
    expect(bmc.calls().filter(({ method }) => method === 'PATCH')).toEqual([]);
  });

  test('are judged by the BMC where it has no list of them', async () => {
    const { registry: _, ...plain } = bios;
    const { driver } = await start({ bios: plain });
    const text = new Map([['Cores', 'many']]);
    expect(typeOf(await driver.stageBios(text))).toBe('settingRefused');
    expect(value(await driver.stageBios(new Map([['Threads', 'Sometimes']]))).changed).toBe(true);
  });

  test('settings that the BMC refuses, drops or does not have are told apart', async () => {
    const refused = await start({ fault: { kind: 'biosRefused' } });
    expect(await refused.driver.stageBios(wanted)).toMatchObject({
      type: 'settingRefused',
      backendText: '400: settings are locked',
    });
    const lying = await start({ fault: { kind: 'yesButNothing' } });
    expect(typeOf(await lying.driver.stageBios(wanted))).toBe('notApplied');
    const none = await startHost();
    closers.push(() => none.bmc.close());
    const driver = driverFor(none.bmc);
    for (const result of [
      await driver.readBios(),
      await driver.stageBios(wanted),
      await driver.checkBios(wanted),
      await driver.readBootOrder(),
      await driver.setBootOrder(['Boot0001']),
    ]) {
      expect(typeOf(result)).toBe('unsupported');
    }
  });

  test('count by what is read back where the connection drops half-way', async () => {
    const { driver } = await start({ fault: { kind: 'dropsHalfway' } });
    expect(value(await driver.stageBios(wanted)).changed).toBe(true);
  });

  test.each(['redirect', 'tooManyBytes', 'gatewayTimeout'] as const)(
    'count by what is read back where %s is the answer',
    async (by) => {
      const { driver } = await start({ fault: { kind: 'answersOddly', by } });
      expect(value(await driver.stageBios(wanted)).changed).toBe(true);
    },
  );

  test.each([
    { kind: 'biosIgnores', attribute: 'Wake' },
    { kind: 'biosDefaults', attribute: 'Wake' },
  ] as const)('settings that a boot leaves out are named: $kind', async (fault) => {
    const { driver, bmc, boot } = await start();
    value(await driver.stageBios(wanted));
    bmc.setFault(fault);
    await boot();
    expect(await driver.checkBios(wanted)).toMatchObject({
      type: 'notApplied',
      message: 'the firmware did not take Wake',
      backendText: 'Wake is false',
    });
  });

  test('settings that no boot takes stay pending', async () => {
    const { driver, boot } = await start({ fault: { kind: 'settingsStayPending' } });
    value(await driver.stageBios(wanted));
    await boot();
    expect(typeOf(await driver.checkBios(wanted))).toBe('stillPending');
  });
});

describe('the persistent boot order', () => {
  test('is listed with names', async () => {
    const { driver } = await start();
    expect(value(await driver.readBootOrder())).toEqual({
      complete: true,
      options: bios.bootOptions,
    });
  });

  test('begins with what is asked for, and keeps the others', async () => {
    const { driver, bmc } = await start({ habits: { needsIfMatch: true } });
    expect(value(await driver.setBootOrder(['Boot0003']))).toEqual({ changed: true, notes: [] });
    expect(bmc.bootOrder()).toEqual(['Boot0003', 'Boot0001', 'Boot0002']);
    expect(value(await driver.setBootOrder(['Boot0003', 'Boot0001'])).changed).toBe(false);
    expect(typeOf(await driver.setBootOrder(['Boot0009']))).toBe('settingUnknown');
  });

  test('waits for a boot where the settings are apart', async () => {
    const { driver, bmc, boot } = await start({ habits: { bootOrderIn: 'settings' } });
    expect(value(await driver.setBootOrder(['Boot0002'])).notes).toHaveLength(1);
    expect(value(await driver.setBootOrder(['Boot0002'])).changed).toBe(true);
    expect(bmc.bootOrder()[0]).toBe('Boot0001');
    await boot();
    expect(bmc.bootOrder()[0]).toBe('Boot0002');
    expect(value(await driver.setBootOrder(['Boot0002'])).changed).toBe(false);
  });

  test('a boot order that is not kept is reported as such', async () => {
    for (const bootOrderIn of ['system', 'settings'] as const) {
      const fault = { kind: 'yesButNothing' } as const;
      const { driver } = await start({ habits: { bootOrderIn }, fault });
      expect(typeOf(await driver.setBootOrder(['Boot0002']))).toBe('notApplied');
    }
  });
});
