/** Services that are odd or hostile, as answers by path; no sockets. */
import type { HttpClient, HttpsRequest } from '@rackwright/platform';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  basics,
  driverOf,
  kindOf,
  readBack,
  serviceOf,
  systemAt,
  token,
} from './canned.fixture.ts';
import { driverFor, password } from './rig.fixture.ts';

describe('of several systems', () => {
  const two = {
    'GET /s': { body: { Members: [{ '@odata.id': '/s/1' }, { '@odata.id': '/s/2' }] } },
    ...systemAt('/s/2', '00000000-0000-0000-0000-000000000002', 'TWO'),
  };

  test('the one is taken whose UUID or serial fits', async () => {
    const guidHex = '00000000000000000000000000000002';
    const byGuid = await driverOf(two, { guidHex }).driver.readIdentity();
    expect(byGuid).toMatchObject({ value: { serial: 'TWO' } });
    const bySerial = await driverOf(two, { serial: 'ONE' }).driver.readIdentity();
    expect(bySerial).toMatchObject({ value: { serial: 'ONE' } });
  });

  test('none is guessed without a clear match', async () => {
    const cases = [
      undefined,
      { serial: 'THREE' },
      { serial: 'ONE', guidHex: '0'.repeat(31) + '2' },
    ];
    for (const expected of cases) {
      expect(kindOf(await driverOf(two, expected).driver.powerState())).toBe('ambiguous');
    }
  });
});

describe('signing in', () => {
  test('falls back to basic authentication where sessions cannot be made', async () => {
    for (const status of [404, 405, 501]) {
      const answers = { 'POST /redfish/v1/SessionService/Sessions': { status } };
      const { driver, requests } = driverOf(answers);
      expect(kindOf(await driver.powerState())).toBe('ok');
      expect(requests.at(-1)?.headers).toHaveProperty('authorization');
    }
  });

  test('is not tried in another form once it was refused', async () => {
    const answers = { 'POST /redfish/v1/SessionService/Sessions': { status: 401 } };
    const { driver, requests } = driverOf(answers);
    expect(kindOf(await driver.powerState())).toBe('authentication');
    expect(requests).toHaveLength(2);
  });
});

describe('redirects', () => {
  test('are followed on the same BMC', async () => {
    const { driver } = driverOf({
      'GET /s/1': { status: 308, headers: { location: 'https://192.0.2.1/s/1/' } },
      ...systemAt('/s/1/', '', 'ONE'),
    });
    expect(await driver.powerState()).toEqual({ kind: 'ok', value: 'on' });
  });

  test('redirects to another place are not followed, and get no credential', async () => {
    for (const location of ['https://192.0.2.2/s/1', '//evil/s', 'http://192.0.2.1/s/1']) {
      const { driver, requests } = driverOf({ 'GET /s/1': { status: 302, headers: { location } } });
      expect(kindOf(await driver.powerState())).toBe('protocol');
      expect(requests.map(({ path }) => path)).not.toContain(location);
    }
  });

  test('redirects of a change may follow it, unless they ask for it at another place', async () => {
    const Actions = { '#Manager.Reset': { target: '/bmc/reset' } };
    for (const [status, seen] of [
      [303, true],
      [307, false],
    ] as const) {
      const { driver, requests } = driverOf({
        'GET /s/1': { body: { Links: { ManagedBy: [{ '@odata.id': '/bmc' }] } } },
        'GET /bmc': { body: { Actions } },
        'POST /bmc/reset': { status, headers: { location: 'https://192.0.2.2/' } },
      });
      expect(kindOf(await driver.resetBmc())).toBe('protocol');
      const readings = requests.filter(({ path }) => path === '/bmc').length;
      expect(readings > 1, `${status}`).toBe(seen);
    }
  });

  test('redirects in a circle end', async () => {
    const { driver } = driverOf({ 'GET /s/1': { status: 307, headers: { location: '/s/1' } } });
    expect(kindOf(await driver.powerState())).toBe('protocol');
  });
});

describe('an answer', () => {
  const statuses: readonly (readonly [number, string])[] = [
    [400, 'rejected'],
    [401, 'busy'],
    [403, 'privilege'],
    [404, 'unsupported'],
    [409, 'busy'],
    [423, 'busy'],
    [429, 'busy'],
    [500, 'trouble'],
    [502, 'trouble'],
    [503, 'busy'],
  ];
  for (const [status, kind] of statuses) {
    test(`an answer of ${status} after signing in is ${kind}`, async () => {
      const { driver } = driverOf({ 'GET /s/1': { status } });
      expect(kindOf(await driver.powerState())).toBe(kind);
    });
  }

  test('an answer of a busy BMC says when to ask again, within bounds', async () => {
    const delays = [
      ['7', 7_000],
      ['999999', 300_000],
      ['soon', undefined],
      ['Mon, 23 Nov 2026 00:00:00 GMT', undefined],
    ] as const;
    for (const [text, askAgainMs] of delays) {
      const headers = { 'retry-after': text };
      const { driver } = driverOf({ 'GET /s/1': { status: 503, headers } });
      const result = await driver.powerState();
      expect(result.kind === 'transient' ? result.retryAfterMs : result, text).toBe(askAgainMs);
    }
  });

  test('carries the words of the BMC, and none of our secrets', async () => {
    const Message = `no ${password}, no ${token}, try later`;
    const error = { '@Message.ExtendedInfo': [{ Message }] };
    const { driver } = driverOf({ 'GET /s/1': { status: 503, body: { error } } });
    const result = await driver.powerState();
    expect(result).toMatchObject({ backendText: '503: no ***, no ***, try later' });
  });

  test('an answer that leads elsewhere by its references is not followed', async () => {
    for (const at of ['https://192.0.2.9/s/1', '//192.0.2.9/s/1', 's/1', '/s/1\r\nX: y', 7]) {
      const { driver } = driverOf({ 'GET /s': { body: { Members: [{ '@odata.id': at }] } } });
      expect(kindOf(await driver.powerState())).toBe('malformed');
    }
  });

  test('an answer that says no power state is malformed', async () => {
    const { driver } = driverOf({ 'GET /s/1': { body: { PowerState: null } } });
    expect(kindOf(await driver.powerState())).toBe('malformed');
  });

  test('an answer of any JSON where settings are expected ends in a result', async () => {
    const at = (path: string) => ({ '@odata.id': path });
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (values, list) => {
        const SettingsObject = at('/settings');
        const { driver } = driverOf({
          'GET /redfish/v1/': {
            body: { RedfishVersion: '1.6.0', Systems: at('/s'), Registries: at('/r') },
          },
          'GET /s/1': { body: { Bios: at('/bios'), Boot: { BootOrder: list, BootOptions: list } } },
          'GET /bios': {
            body: {
              ...{ Attributes: { A: 1, B: values }, AttributeRegistry: 'R' },
              '@Redfish.Settings': { SettingsObject, SupportedApplyTimes: list },
            },
          },
          'GET /settings': { body: { Attributes: values } },
          'GET /r': { body: { Members: [at('/r/R')] } },
          'GET /r/R': { body: { Location: [{ Uri: '/r/R.json' }] } },
          'GET /r/R.json': { body: { RegistryEntries: { Attributes: list } } },
          'PATCH /settings': { status: 204 },
        });
        const wanted = new Map([['A', '2']]);
        for (const result of [
          await driver.readBios(),
          await driver.stageBios(wanted),
          await driver.readBootOrder(),
          await driver.setBootOrder(['x']),
        ]) {
          expect(JSON.stringify(result)).not.toContain(password);
        }
      }),
      { numRuns: 50 },
    );
  });

  test('an answer of any JSON at all ends in a result', async () => {
    await fc.assert(
      fc.asyncProperty(fc.jsonValue(), fc.jsonValue(), async (root, system) => {
        const { driver } = driverOf({
          'GET /redfish/v1/': { body: root },
          'GET /redfish/v1/Systems': { body: system },
          'GET /s/1': { body: system },
        });
        for (const result of [
          await driver.readIdentity(),
          await driver.setPower('off'),
          await driver.setBootOverride({ device: 'disk', firmware: 'bios' }),
          await driver.readInventory(['processors', 'memory', 'drives', 'interfaces', 'firmware']),
        ]) {
          expect(JSON.stringify(result)).not.toContain(password);
        }
      }),
      { numRuns: 50 },
    );
  });
});

describe('a boot override', () => {
  const Boot = { BootSourceOverrideEnabled: 'Once', BootSourceOverrideTarget: 'Pxe' };
  const later = { '@Redfish.Settings': { SettingsObject: { '@odata.id': '/s/1/SD' } } };
  const network = { device: 'network', firmware: 'uefi' } as const;
  const patched = (requests: readonly HttpsRequest[]) =>
    requests.filter(({ method }) => method === 'PATCH').map(({ path }) => path);

  test.each<[string, object, string[]]>([
    ['refuses it', { Boot: { ...Boot, BootSourceOverrideTarget: 'None' } }, ['/s/1', '/s/1/SD']],
    ['does not show one', {}, ['/s/1/SD']],
  ])('goes to the settings for the next boot where the system %s', async (_how, body, paths) => {
    const { driver, requests } = driverOf({
      'GET /s/1': { body: { PowerState: 'Off', ...later, ...body } },
      'PATCH /s/1': { status: 400 },
      'GET /s/1/SD': { body: { Boot }, headers: { etag: '"7"' } },
      'PATCH /s/1/SD': { status: 204 },
    });
    expect(await driver.setBootOverride(network)).toMatchObject({ value: { changed: true } });
    expect(patched(requests)).toEqual(paths);
    expect(requests.find(({ method, path }) => method === 'PATCH' && path === '/s/1/SD')).toEqual(
      expect.objectContaining({ headers: expect.objectContaining({ 'if-match': '"7"' }) }),
    );
  });

  test('is refused in the words of the system where the settings have no override', async () => {
    const { driver, requests } = driverOf({
      'GET /s/1': { body: { PowerState: 'Off', ...later, Boot } },
      'PATCH /s/1': { status: 400, body: { error: { message: 'not now' } } },
      'GET /s/1/SD': { body: { Boot: { BootOrder: ['a'] } } },
    });
    const refused = await driver.setBootOverride(network);
    expect(refused).toMatchObject({ type: 'rejected', backendText: expect.stringMatching('not') });
    expect(patched(requests)).toEqual(['/s/1']);
  });

  test('is refused for a device that the system does not list', async () => {
    const offered = { 'BootSourceOverrideTarget@Redfish.AllowableValues': ['Hdd'] };
    const { driver, requests } = driverOf({
      'GET /s/1': { body: { PowerState: 'Off', ...later, Boot: { ...Boot, ...offered } } },
      'GET /s/1/SD': { body: { Boot } },
      'PATCH /s/1/SD': { status: 204 },
    });
    expect(kindOf(await driver.setBootOverride(network))).toBe('unsupported');
    expect(patched(requests)).toEqual([]);
  });

  test('is refused for good also where the settings cannot be read', async () => {
    const { driver } = driverOf({
      'GET /s/1': { body: { PowerState: 'Off', ...later, Boot } },
      'PATCH /s/1': { status: 400 },
      'GET /s/1/SD': { status: 502 },
    });
    expect(kindOf(await driver.setBootOverride(network))).toBe('rejected');
  });

  test('counts by what is read back where the answer to it is odd', async () => {
    const system = { 'GET /s/1': { body: { PowerState: 'Off', Boot } } };
    const odd = { 'PATCH /s/1': { status: 502 } };
    const { driver } = driverOf({ ...system, ...odd });
    expect(await driver.setBootOverride(network)).toMatchObject({ value: { changed: true } });
    const { driver: other } = driverOf({ ...systemAt('/s/1', '', 'ONE'), ...odd });
    expect(kindOf(await other.setBootOverride(network))).toBe('trouble');
  });
});

test('a power change that was never ordered is not called made by a later reading', async () => {
  const { client } = serviceOf({ ...basics, 'GET /s/1': { body: { PowerState: 'Off' } } });
  const trouble = serviceOf({ ...basics, 'GET /s/1': { status: 500 } });
  const requests: HttpsRequest[] = [];
  const flaky: HttpClient = {
    peer: (...to) => {
      const [well, ill] = [client.peer(...to), trouble.client.peer(...to)];
      const request = async (one: HttpsRequest) => {
        const isFirst = requests.every(({ path }) => path !== '/s/1');
        requests.push(one);
        return await (isFirst ? ill : well).request(one);
      };
      return { ...well, request };
    },
  };
  const parts = { client: flaky, readBack };
  const driver = driverFor({ address: '192.0.2.1', port: 443 }, { parts });
  expect(kindOf(await driver.setPower('off'))).toBe('trouble');
  expect(requests.map(({ method }) => method)).not.toContain('PATCH');
  expect(requests.filter(({ path }) => path === '/s/1')).toHaveLength(1);
  expect(await driver.setPower('off')).toMatchObject({ value: { changed: false } });
});

test('a credential that cannot be sent is refused before anything is', async () => {
  for (const target of [{ user: 'a:b' }, { password: '' }, { password: 'x\ny' }]) {
    const { client, requests } = serviceOf(basics);
    const driver = driverFor({ address: '192.0.2.1', port: 443 }, { target, parts: { client } });
    expect(kindOf(await driver.powerState())).toBe('invalidCredential');
    expect(requests).toEqual([]);
  }
});
