import { nearestName } from '@rackwright/platform';
import { checkConfig } from '@rackwright/platform/config';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConfig, parseWholeConfig } from './config.ts';

const minimal = 'serverAddress: 192.0.2.1\n';

const tftpLimits = {
  ...{ transfersMax: 256, transfersPerClientMax: 8, blockBytesMax: 1468, windowBlocksMax: 16 },
  ...{ timeoutSecondsMax: 30, retryDelayMs: 1_000, retryDelayMsMax: 8_000, attemptsMax: 6 },
  ...{ openingAttemptsMax: 3, refusedDelayMs: 200 },
};

const defaultBmc = {
  ipmitool: { path: 'ipmitool', callTimeoutMs: 20_000 },
  redfish: {
    networkBoot: 'pxe',
    bootMode: 'asFound',
    firmwareUrls: [],
    limits: {
      ...{ connectTimeoutMs: 5_000, requestTimeoutMs: 25_000 },
      ...{ bodyBytesMax: 1_048_576, headerBytesMax: 16_384 },
    },
  },
  readBack: { windowMs: 16_000, pollMs: 1_000 },
  governor: {
    ...{ spacingMs: undefined, queueCallsMax: 32 },
    ...{ breakerAfterSilentCalls: 3, breakerOpenMs: 15_000, breakerOpenMsMax: 300_000 },
    ...{ authenticationFailuresMax: 2, refusedCredentialsMax: 16 },
  },
  firmware: 'bios',
};

describe('the configuration of the agent', () => {
  test('needs an address and has a visible default for the rest', () => {
    expect(parseConfig(minimal)).toEqual({
      stateFolder: '/var/lib/rackwright-agent',
      ...{ serverAddress: '192.0.2.1', interfaces: [] },
      log: { level: 'info' },
      metrics: { address: '127.0.0.1', port: 7446 },
      dhcp: {
        mode: 'proxy',
        address: '0.0.0.0',
        port: 67,
        pxeAddress: '0.0.0.0',
        pxePort: 4011,
        clientPort: 68,
        relayPort: 67,
        broadcastAddress: '255.255.255.255',
      },
      tftp: {
        ...{ address: '0.0.0.0', port: 69, transferPorts: 'own', limits: tftpLimits },
        keptFileBytesMax: 268435456,
      },
      http: {
        ...{ address: '0.0.0.0', port: 8080, filesPort: 0 },
        limits: {
          headerBytesMax: 8_192,
          targetBytesMax: 1_024,
          ...{ connectionsMax: 512, connectionsPerAddressMax: 64 },
          ...{ connectionsPerHostMax: 8, keptFileBytesMax: 134_217_728 },
          idleTimeoutMs: 30_000,
        },
      },
      ...{ loaders: {}, bootProfiles: [], loaderFiles: [], loaderBytesMax: 33_554_432 },
      files: [],
      runner: {
        kernel: 'vmlinuz',
        initrd: 'initrd',
        kernelArguments: [],
        architecture: 'amd64',
        address: '0.0.0.0',
        port: 7443,
      },
      bmc: defaultBmc,
      ...{ imageCacheBytesMax: 8 * 1024 ** 3, imagesAtOnceMax: 8 },
      netboots: {
        repeatAfterMs: 60_000,
        missingAfterMs: 120_000,
        hostsMax: 10_000,
        pendingMax: 256,
      },
    });
  });

  test('is read from JSON as well', () => {
    const text = JSON.stringify({
      serverAddress: '192.0.2.1',
      dhcp: { mode: 'off' },
      bmc: { ipmitoolPath: '/opt/ipmitool', spacingMs: 0 },
      files: [{ name: 'vmlinuz', path: '/boot/vmlinuz' }],
      loaders: { bios: 'undionly.kpxe' },
      crashAt: '/tmp/armed',
    });
    const config = parseConfig(text);
    expect(config.dhcp).toEqual({ mode: 'off' });
    expect(config.loaders).toEqual({ bios: 'undionly.kpxe' });
    expect(config.bmc.ipmitool.path).toBe('/opt/ipmitool');
    expect(config.bmc.governor.spacingMs).toBe(0);
    expect(config.crashAt).toBe('/tmp/armed');
  });

  test('is frozen to the bottom', () => {
    const config = parseConfig(minimal);
    expect(Object.isFrozen(config.bmc.governor)).toBe(true);
  });

  test.each([
    ['a missing key', '{}', 'serverAddress is missing: give an IPv4 address'],
    ['no mapping', '- 1', 'the file has to be a mapping'],
    ['no YAML', 'a: [', 'neither YAML nor JSON'],
    ['an unknown key', `${minimal}servrAddress: x`, 'did you mean serverAddress?'],
    ['an unknown key below', `${minimal}bmc: {spacing: 1}`, 'bmc.spacing is no key'],
    ['a key that its mode lacks', `${minimal}dhcp: {mode: off, port: 67}`, 'dhcp.port is no key'],
    ['an unknown key in a list', `${minimal}files: [{name: a, path: b, mode: 1}]`, 'files[0].mode'],
    ['a wrong choice', `${minimal}log: {level: loud}`, 'one of debug, info, warn, error'],
    [
      'a boot profile that no label could name',
      `${minimal}bootProfiles: [{name: "a b"}]`,
      'bootProfiles[0].name has to be a value that a label may have',
    ],
    ['a number out of range', `${minimal}tftp: {port: 65536}`, 'tftp.port has to be a whole'],
    [
      'a wait without an end',
      `${minimal}http: {limits: {idleTimeoutMs: 3600001}}`,
      'http.limits.idleTimeoutMs has to be a whole',
    ],
    [
      'a limit that follows from the protocol',
      `${minimal}tftp: {limits: {timeoutSecondsMax: 30}}`,
      'tftp.limits.timeoutSecondsMax is no key',
    ],
    ['a text for a number', `${minimal}tftp: {port: "69"}`, 'tftp.port has to be a whole'],
    ['a name for an address', 'serverAddress: agent.example', 'has to be an IPv4 address'],
    ['something else for a list', `${minimal}files: {}`, 'files has to be a list'],
  ])('refuses %s and says what would be right', (_what, text, message) => {
    expect(() => parseConfig(text)).toThrow(message);
  });
});

test('files for a Raspberry Pi are read with their limit', () => {
  const files = [{ name: 'overlays/x.dtbo', path: '/srv/pi/overlays/x.dtbo' }];
  const read = (raspberryPi: object) =>
    parseConfig(JSON.stringify({ serverAddress: '10.77.0.1', raspberryPi })).raspberryPi;
  expect(read({ files })).toEqual({ files, fileBytesMax: 33_554_432 });
  expect(read({ files, fileBytesMax: 5 })).toEqual({ files, fileBytesMax: 5 });
  expect(parseConfig('serverAddress: 10.77.0.1').raspberryPi).toBeUndefined();
});

test('the limits of transfers and of kept files can be set', () => {
  // JSON is YAML. Each of these is another than its default.
  const limits = {
    ...{ transfersMax: 255, transfersPerClientMax: 7, blockBytesMax: 1467, windowBlocksMax: 15 },
  };
  const config = parseConfig(
    `serverAddress: 10.77.0.1\nloaderBytesMax: 5\ntftp: ${JSON.stringify({ limits })}\n`,
  );
  expect(config.tftp.limits).toEqual({ ...tftpLimits, ...limits });
  expect(config.loaderBytesMax).toBe(5);
});

describe('a configuration to run with', () => {
  const files = 'files:\n  - {name: vmlinuz, path: /v}\n  - {name: initrd, path: /i}\n';
  const runnable = `serverAddress: 10.77.0.1\n${files}`;
  const subnet = 'subnet: {network: 10.77.0.0/24}';
  const network = (range: string) =>
    `serverAddress: 10.77.0.1, dhcp: {mode: reservation, ${subnet}, ${range}}`;
  const good = network('range: {first: 10.77.0.5, last: 10.77.0.9}');
  const problemsIn = (text: string) => {
    const checked = checkConfig(text, parseWholeConfig);
    const found = checked.kind === 'bad' ? checked.problems : [];
    return found.map(({ line, message }) => `${line} ${message}`);
  };
  const listed = (...entries: string[]) =>
    `interfaces:\n${entries.map((entry) => `  - {${entry}}\n`).join('')}${files}`;

  test('is refused with nothing to say when it can work', () => {
    expect(problemsIn(runnable)).toEqual([]);
    expect(
      problemsIn(listed(`name: eth1, ${good}`, 'name: eth2, serverAddress: 10.78.0.1')),
    ).toEqual([]);
  });

  test.each<[string, string, string]>([
    ['a loader', 'loaders: {bios: nosuch}', '5 loaders.bios has to be a name among loaderFiles'],
    ['a kernel', 'runner: {kernel: typo}', '5 runner.kernel has to be a name among files'],
    [
      'a place of firmware',
      "bmc: {redfishFirmwareUrls: ['ftp://x/']}",
      '5 bmc.redfishFirmwareUrls[0] has to be a plain URL',
    ],
    ['a port of two servers', 'http: {port: 7443}', '5 http.port has to be another than'],
  ])('%s that cannot be is told with its line', (_what, line, told) => {
    expect(problemsIn(`${runnable}${line}\n`)).toEqual([expect.stringContaining(told)]);
  });

  test.each<[string, string, string]>([
    ['backwards', 'range: {first: 10.77.0.9, last: 10.77.0.5}', 'range.last must not be before'],
    ['outside', 'range: {first: 10.78.0.5, last: 10.78.0.9}', "must be a host's address in"],
    [
      'over our address',
      'range: {first: 10.77.0.1, last: 10.77.0.9}',
      'must not contain 10.77.0.1',
    ],
  ])('a range %s is told with its line', (_what, range, told) => {
    const text = listed('name: eth2, serverAddress: 10.78.0.1', `name: eth1, ${network(range)}`);
    const [first = '', ...others] = problemsIn(text);
    expect(others).toEqual([]);
    expect(first).toContain('3 interfaces[1].dhcp.range');
    expect(first).toContain(told);
  });

  test('each place of firmware that cannot be is told with its own line', () => {
    const urls = ['http://x/', 'ftp://x/', 'https://x/?y'].map((url) => `    - ${url}\n`).join('');
    expect(problemsIn(`${runnable}bmc:\n  redfishFirmwareUrls:\n${urls}`)).toEqual([
      expect.stringMatching(/^8 bmc.redfishFirmwareUrls\[1\] .* it is ftp:\/\/x\/$/),
      expect.stringMatching(/^9 bmc.redfishFirmwareUrls\[2\] .* it is https:\/\/x\/\?y$/),
    ]);
  });

  test('a subnet in which another interface is is told', () => {
    const text = listed(`name: eth1, ${good}`, 'name: eth2, serverAddress: 10.77.0.200');
    expect(problemsIn(text)).toEqual([
      '2 interfaces[0].dhcp.subnet.network has to be without the address of interface eth2',
    ]);
  });
});

describe('the nearest name', () => {
  test('is the one with the fewest edits, or none at all', () => {
    expect(nearestName('pot', ['port', 'address'])).toBe('port');
    expect(nearestName('zzzzzz', ['port', 'address'])).toBeUndefined();
    expect(nearestName('port', [])).toBeUndefined();
  });

  test('a known name is the nearest name to itself', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1 });
    fc.assert(
      fc.property(names, (known) => {
        expect(nearestName(known[0] ?? '', known)).toBe(known[0]);
      }),
    );
  });
});
