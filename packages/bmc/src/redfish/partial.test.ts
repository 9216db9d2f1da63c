/** Lists in pages, parts that cannot be read, and systems that move. */
import { describe, expect, test } from 'vitest';
import { basics, driverOf, kindOf, readBack, serviceOf, systemAt } from './canned.fixture.ts';
import { driverFor } from './rig.fixture.ts';

const at = (path: string) => ({ '@odata.id': path });
const next = (path: string) => ({ 'Members@odata.nextLink': path });
const drives = ['drives'] as const;

describe('a list in pages', () => {
  const storages = {
    'GET /s/1': { body: { PowerState: 'On', Storage: at('/st') } },
    'GET /st': { body: { Members: [at('/st/1')], ...next('/st?page=2') } },
    'GET /st/1': { body: { Id: '1', Drives: [at('/d/1')] } },
    'GET /st/2': { body: { Id: '2', Drives: [at('/d/2')] } },
    'GET /d/1': { body: { SerialNumber: 'A' } },
    'GET /d/2': { body: { SerialNumber: 'B' } },
  };

  test('is read to its end', async () => {
    const { driver } = driverOf({
      ...storages,
      'GET /st?page=2': { body: { Members: [at('/st/2')] } },
    });
    expect(await driver.readInventory(drives)).toMatchObject({
      value: { drives: [{ serial: 'A' }, { serial: 'B' }], complete: true },
    });
  });

  test('is incomplete where a page cannot be read', async () => {
    const { driver } = driverOf({ ...storages, 'GET /st?page=2': { status: 400 } });
    expect(await driver.readInventory(drives)).toMatchObject({
      value: { drives: [{ serial: 'A' }], complete: false },
    });
  });

  test('is incomplete where it never ends', async () => {
    const page = { body: { Members: [], ...next('/st?page=2') } };
    const { driver } = driverOf({ ...storages, 'GET /st?page=2': page });
    expect(await driver.readInventory(drives)).toMatchObject({ value: { complete: false } });
  });

  test('names systems on all of its pages', async () => {
    const { driver } = driverOf(
      {
        'GET /s': { body: { Members: [at('/s/1')], ...next('/s?page=2') } },
        'GET /s?page=2': { body: { Members: [at('/s/2')] } },
        ...systemAt('/s/2', '', 'TWO'),
      },
      { serial: 'TWO' },
    );
    expect(await driver.readIdentity()).toMatchObject({ value: { serial: 'TWO' } });
  });
});

describe('a chassis', () => {
  const system = { 'GET /s/1': { body: { SerialNumber: 'ONE', Links: { Chassis: [at('/c')] } } } };

  test.each([400, 403])('a chassis that is answered with %d gives no identity', async (status) => {
    const { driver } = driverOf({ ...system, 'GET /c': { status } });
    expect((await driver.readIdentity()).kind).toBe('failed');
  });

  test('a chassis that the BMC does not have has no serial', async () => {
    const { driver } = driverOf(system);
    expect(await driver.readIdentity()).toMatchObject({ kind: 'ok', value: { serial: 'ONE' } });
  });
});

describe('a member that cannot be read', () => {
  const hooks = { onProgress: () => {}, beforeOrder: () => undefined };
  const raid = (controller: string) => ({ controller, volumes: [], checkOnly: false });
  const storages = {
    'GET /s/1': { body: { PowerState: 'On', Storage: at('/st') } },
    'GET /st': { body: { Members: [at('/st/1'), at('/st/2')] } },
    'GET /st/2': { body: { Id: '2' } },
  };

  test.each([
    [403, 'privilege'],
    [404, 'volumesRefused'],
  ])('a controller that is answered with %d is %s', async (status, type) => {
    const { driver } = driverOf({ ...storages, 'GET /st/1': { status } });
    expect(kindOf(await driver.applyVolumes(raid('1'), hooks))).toBe(type);
  });

  test.each([
    [403, 'privilege'],
    [404, 'volumesRefused'],
  ])('a wanted drive that is answered with %d is %s', async (status, type) => {
    const { driver } = driverOf({
      ...storages,
      'GET /st/1': { body: { Id: '1', Drives: [at('/d/1')] } },
      'GET /d/1': { status },
    });
    const volumes = [{ raidType: 'RAID0', drives: ['a'] }] as const;
    expect(kindOf(await driver.applyVolumes({ ...raid('1'), volumes }, hooks))).toBe(type);
  });

  test.each([
    [403, 'privilege'],
    [404, 'updateFailed'],
  ])('a component that is answered with %d is %s', async (status, type) => {
    const root = { RedfishVersion: '1.6.0', Systems: at('/s'), UpdateService: at('/u') };
    const { driver } = driverOf({
      'GET /redfish/v1/': { body: { ...root, Links: { Sessions: at(sessions) } } },
      'GET /u': { body: { FirmwareInventory: at('/u/f') } },
      'GET /u/f': { body: { Members: [at('/u/f/1')] } },
      'GET /u/f/1': { status },
    });
    const order = { component: 'BMC', version: '2', uri: 'http://a/b', checkOnly: false };
    expect(kindOf(await driver.updateFirmware(order, () => {}))).toBe(type);
  });
});

const sessions = '/redfish/v1/SessionService/Sessions';

describe('a refusal of 403 without sessions', () => {
  const noSessions = { [`POST ${sessions}`]: { status: 404 } };

  test('is of the credential where nothing was accepted before', async () => {
    const { driver } = driverOf({ ...noSessions, 'GET /s': { status: 403 } });
    expect(kindOf(await driver.powerState())).toBe('authentication');
  });

  test('is of the privilege where the credential was accepted before', async () => {
    const { driver } = driverOf({ ...noSessions, 'GET /s/1': { status: 403 } });
    expect(kindOf(await driver.powerState())).toBe('privilege');
  });
});

describe('a system whose path is gone', () => {
  const moved = { 'GET /s': { body: { Members: [at('/s/9')] } }, 'GET /s/1': { status: 404 } };

  function driverThatKnows() {
    const answers: Parameters<typeof serviceOf>[0] = {};
    Object.assign(answers, basics);
    const { client, requests } = serviceOf(answers);
    const parts = { client, readBack };
    const driver = driverFor({ address: '192.0.2.1', port: 443 }, { parts });
    return { driver, requests, change: (to: typeof answers) => Object.assign(answers, to) };
  }

  test('is found under its new path', async () => {
    const { driver, change, requests } = driverThatKnows();
    expect(kindOf(await driver.powerState())).toBe('ok');
    change({ ...moved, ...systemAt('/s/9', '00000000-0000-0000-0000-000000000001', 'ONE') });
    expect(kindOf(await driver.powerState())).toBe('ok');
    requests.splice(0);
    expect(kindOf(await driver.powerState())).toBe('ok');
    expect(requests.map(({ path }) => path)).not.toContain('/s/1');
  });

  test('is not replaced by another one that is left', async () => {
    const { driver, change } = driverThatKnows();
    expect(kindOf(await driver.powerState())).toBe('ok');
    change({ ...moved, ...systemAt('/s/9', '00000000-0000-0000-0000-000000000002', 'TWO') });
    expect(kindOf(await driver.powerState())).toBe('ambiguous');
  });
});
