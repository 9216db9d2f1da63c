import { nearestName } from '@rackwright/platform';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseConfig } from './config.ts';

const minimal = 'serverAddress: 192.0.2.1\n';

describe('the configuration of the agent', () => {
  test('needs an address and has a visible default for the rest', () => {
    expect(parseConfig(minimal)).toEqual({
      stateFolder: '/var/lib/rackwright-agent',
      ...{ serverAddress: '192.0.2.1', interfaces: [] },
      log: { level: 'info' },
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
      tftp: { address: '0.0.0.0', port: 69 },
      http: {
        ...{ address: '0.0.0.0', port: 8080 },
        limits: {
          headerBytesMax: 8_192,
          targetBytesMax: 1_024,
          connectionsMax: 512,
          connectionsPerAddressMax: 64,
          idleTimeoutMs: 30_000,
        },
      },
      loaders: {},
      loaderFiles: [],
      files: [],
      runner: {
        kernel: 'vmlinuz',
        initrd: 'initrd',
        kernelArguments: [],
        architecture: 'amd64',
        address: '0.0.0.0',
        port: 7443,
      },
      bmc: {
        ipmitool: { path: 'ipmitool', callTimeoutMs: 20_000 },
        redfish: {
          networkBoot: 'pxe',
          bootMode: 'asFound',
          limits: {
            connectTimeoutMs: 5_000,
            requestTimeoutMs: 25_000,
            bodyBytesMax: 1_048_576,
            headerBytesMax: 16_384,
          },
        },
        readBack: { windowMs: 16_000, pollMs: 1_000 },
        governor: {
          spacingMs: 500,
          queueCallsMax: 32,
          breakerAfterSilentCalls: 3,
          breakerOpenMs: 15_000,
          breakerOpenMsMax: 300_000,
          authenticationFailuresMax: 2,
          refusedCredentialsMax: 16,
        },
        firmware: 'bios',
      },
      imageCacheBytesMax: 8 * 1024 ** 3,
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
      crashAt: { name: 'agent.begun' },
    });
    const config = parseConfig(text);
    expect(config.dhcp).toEqual({ mode: 'off' });
    expect(config.loaders).toEqual({ bios: 'undionly.kpxe' });
    expect(config.bmc.ipmitool.path).toBe('/opt/ipmitool');
    expect(config.bmc.governor.spacingMs).toBe(0);
    expect(config.crashAt).toEqual({ name: 'agent.begun', occurrence: 1 });
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
    ['a number out of range', `${minimal}tftp: {port: 65536}`, 'tftp.port has to be a whole'],
    ['a text for a number', `${minimal}tftp: {port: "69"}`, 'tftp.port has to be a whole'],
    ['a name for an address', 'serverAddress: agent.example', 'has to be an IPv4 address'],
    ['something else for a list', `${minimal}files: {}`, 'files has to be a list'],
  ])('refuses %s and says what would be right', (_what, text, message) => {
    expect(() => parseConfig(text)).toThrow(message);
  });
});

describe('the nearest name', () => {
  test('is the one with the fewest edits, or none at all', () => {
    expect(nearestName('pot', ['port', 'address'])).toBe('port');
    expect(nearestName('zzzzzz', ['port', 'address'])).toBeUndefined();
    expect(nearestName('port', [])).toBeUndefined();
  });

  test('of a known name is that name', () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-z]{1,12}$/), { minLength: 1 });
    fc.assert(
      fc.property(names, (known) => {
        expect(nearestName(known[0] ?? '', known)).toBe(known[0]);
      }),
    );
  });
});
