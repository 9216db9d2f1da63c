import { expect, test } from 'vitest';
import { type BootConfig, checkBootConfig } from './config.ts';
import { dhcpListenDefault, proxyDhcpDefault } from './dhcp-config.ts';

const good: BootConfig = {
  serverAddress: '10.77.0.1',
  dhcp: proxyDhcpDefault,
  tftp: { address: '10.77.0.1', port: 69 },
  http: { address: '10.77.0.1', port: 80 },
  loaders: { bios: 'undionly.kpxe' },
  loaderFiles: [{ name: 'undionly.kpxe', path: '/usr/lib/ipxe/undionly.kpxe' }],
  files: [
    { name: 'vmlinuz', path: '/srv/vmlinuz' },
    { name: 'initrd', path: '/srv/initrd' },
  ],
  runner: {
    kernel: 'vmlinuz',
    initrd: 'initrd',
    agentEndpoint: '10.77.0.1:7443',
    fingerprint: 'ab'.repeat(32),
    kernelArguments: ['console=ttyS0,115200'],
  },
};

test('accepts a configuration that can work', () => {
  expect(() => checkBootConfig(good)).not.toThrow();
});

test.each<[string, Partial<BootConfig>, string]>([
  ['a name for the address', { serverAddress: 'rack1' }, 'serverAddress'],
  ['a loader that is no file', { loaders: { uefiX64: 'x' } }, 'loaders.uefiX64'],
  ['a file name with a slash', { files: [...good.files, { name: 'a/b', path: '/b' }] }, '"a/b"'],
  ['a hidden file', { files: [...good.files, { name: '..', path: '/b' }] }, '".."'],
  ['a kernel that is no file', { runner: { ...good.runner, kernel: 'x' } }, 'runner.kernel'],
  ['a ramdisk that is no file', { runner: { ...good.runner, initrd: 'x' } }, 'runner.initrd'],
  [
    'an endpoint without a port',
    { runner: { ...good.runner, agentEndpoint: '10.77.0.1' } },
    'runner.agentEndpoint',
  ],
  [
    'a fingerprint of another length',
    { runner: { ...good.runner, fingerprint: 'ab' } },
    'runner.fingerprint',
  ],
  [
    'a kernel argument that iPXE would expand',
    { runner: { ...good.runner, kernelArguments: ['a=${x}'] } },
    'kernel argument',
  ],
  [
    'a kernel argument of two words',
    { runner: { ...good.runner, kernelArguments: ['a && shell'] } },
    'kernel argument',
  ],
])('refuses %s, naming it', (_name, change, words) => {
  expect(() => checkBootConfig({ ...good, ...change })).toThrow(words);
});

test('refuses ranges in which its own address lies, and leases that cannot be', () => {
  const subnet = { network: '10.77.0.0/24', routers: [], dnsServers: [], leaseSeconds: 3_600 };
  const dhcp = {
    mode: 'reservation',
    ...dhcpListenDefault,
    subnet,
    reservations: [],
    range: { first: '10.77.0.1', last: '10.77.0.9' },
    declinedMs: 1,
    otherServer: { quietMs: 1, probeMs: 0 },
    leasesPath: '/state/dhcp-leases',
  } as const;
  expect(() => checkBootConfig({ ...good, dhcp })).toThrow(
    'boot configuration: dhcp.range must not contain 10.77.0.1, the address of this agent',
  );
  const elsewhere = { ...dhcp, range: { first: '10.77.0.2', last: '10.77.0.9' } };
  expect(() => checkBootConfig({ ...good, dhcp: elsewhere })).not.toThrow();
  const short = { ...elsewhere, subnet: { ...subnet, leaseSeconds: 1 } };
  expect(() => checkBootConfig({ ...good, dhcp: short })).toThrow('dhcp.subnet.leaseSeconds');
});
