import { describe, expect, test } from 'vitest';
import { addressAsked, type BootConfig, type BootInterface, checkBootConfig } from './config.ts';
import { type DhcpConfig, dhcpListenDefault, type ReservationDhcpConfig } from './dhcp-config.ts';

const proxyDhcpDefault: DhcpConfig = { mode: 'proxy', ...dhcpListenDefault };

const good: BootConfig = {
  interfaces: [{ serverAddress: '10.77.0.1', dhcp: proxyDhcpDefault }],
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
    agentPort: 7443,
    fingerprint: 'ab'.repeat(32),
    kernelArguments: ['console=ttyS0,115200'],
  },
};

const profile = { name: 'a', loaders: {}, kernelArguments: [], firmware: 'uefi' } as const;

test('the reader accepts a configuration that can work', () => {
  expect(() => checkBootConfig(good)).not.toThrow();
});

test('the configuration may name files for a Raspberry Pi, with a folder and without', () => {
  const names = ['start4.elf', 'bcm2711-rpi-4-b.dtb', 'overlays/miniuart-bt.dtbo', 'RPI_EFI.fd'];
  const files = names.map((name) => ({ name, path: `/srv/pi/${name}` }));
  expect(() => checkBootConfig({ ...good, raspberryPi: { files } })).not.toThrow();
});

test.each<[string, Partial<BootConfig>, string]>([
  [
    'a name for the address',
    { interfaces: [{ serverAddress: 'rack1', dhcp: { mode: 'off' } }] },
    'serverAddress',
  ],
  ['no interface', { interfaces: [] }, 'interfaces has to be at least one'],
  ['a loader that is no file', { loaders: { uefiX64: 'x' } }, 'loaders.uefiX64'],
  [
    'a boot profile with a loader that is no file',
    { bootProfiles: [{ ...profile, loaders: { bios: 'x' } }] },
    'bootProfiles[0].loaders.bios has to be a name among loaderFiles',
  ],
  [
    'a boot profile with a word that iPXE would expand',
    { bootProfiles: [{ ...profile, kernelArguments: ['${x}'] }] },
    'bootProfiles[0].kernelArguments has to be words without spaces',
  ],
  [
    'two boot profiles of one name',
    { bootProfiles: [profile, profile] },
    'bootProfiles[1].name has to be another than that of a profile before it',
  ],
  [
    'a file name with a slash',
    { files: [...good.files, { name: 'a/b', path: '/b' }] },
    'files[2].name',
  ],
  ['no file for a Raspberry Pi', { raspberryPi: { files: [] } }, 'raspberryPi.files'],
  ...['..', '../a', 'a/..', '/etc/passwd', 'a/b/c', 'a//b', 'a/', '', './a', 'a\\b', 'a b'].map(
    (name): [string, Partial<BootConfig>, string] => [
      `the name ${JSON.stringify(name)} of a file for a Raspberry Pi`,
      { raspberryPi: { files: [{ name, path: '/x' }] } },
      `raspberryPi.files[0].name has to be a name, or a folder and a name, unlike`,
    ],
  ),
  ...['boot.scr.uimg', 'grub/grub.cfg', 'dc-a6-32-0a-ef-79/start4.elf'].map(
    (name): [string, Partial<BootConfig>, string] => [
      `the name ${name}, which means something else, of a file for a Raspberry Pi`,
      { raspberryPi: { files: [{ name, path: '/x' }] } },
      'raspberryPi.files[0].name has to be another than a name that the agent itself serves',
    ],
  ),
  ...['config.txt', 'undionly.kpxe'].map((name): [string, Partial<BootConfig>, string] => [
    `the name ${name} of two files, one for a Raspberry Pi`,
    { raspberryPi: { files: ['config.txt', name].map((one) => ({ name: one, path: '/x' })) } },
    'raspberryPi.files[1].name has to be another than that of another file',
  ]),
  ['a hidden file', { files: [...good.files, { name: '..', path: '/b' }] }, '".."'],
  [
    'a name that a loader has already',
    { files: [...good.files, { name: 'undionly.kpxe', path: '/b' }] },
    'files[2].name has to be another than that of a file before it',
  ],
  ['a port of two', { tftp: { address: '0.0.0.0', port: 67 } }, 'dhcp.port has to be another than'],
  ['a kernel that is no file', { runner: { ...good.runner, kernel: 'x' } }, 'runner.kernel'],
  ['a ramdisk that is no file', { runner: { ...good.runner, initrd: 'x' } }, 'runner.initrd'],
  [
    'no port to find the agent at',
    { runner: { ...good.runner, agentPort: 0 } },
    'runner.agentPort',
  ],
  [
    'a fingerprint of another length',
    { runner: { ...good.runner, fingerprint: 'ab' } },
    'runner.fingerprint',
  ],
  [
    'a kernel argument that iPXE would expand',
    { runner: { ...good.runner, kernelArguments: ['a=${x}'] } },
    'runner.kernelArguments',
  ],
  [
    'a kernel argument of two words',
    { runner: { ...good.runner, kernelArguments: ['a && shell'] } },
    'runner.kernelArguments',
  ],
])('the reader refuses %s, naming it', (_name, change, text) => {
  expect(() => checkBootConfig({ ...good, ...change })).toThrow(text);
});

function reservation(network: string, first: number): ReservationDhcpConfig {
  return {
    mode: 'reservation',
    ...dhcpListenDefault,
    subnet: { network: `${network}.0/24`, routers: [], dnsServers: [], leaseSeconds: 3_600 },
    reservations: [],
    range: { first: `${network}.${first}`, last: `${network}.9` },
    declinedMs: 1,
    otherServer: { quietMs: 1, probeMs: 0 },
    leasesPath: '/state/dhcp-leases',
  };
}

const ofDhcp = (dhcp: DhcpConfig): BootConfig => {
  return { ...good, interfaces: [{ serverAddress: '10.77.0.1', dhcp }] };
};

test('the reader refuses ranges in which its own address lies, and leases that cannot be', () => {
  const dhcp = reservation('10.77.0', 1);
  const { subnet } = dhcp;
  expect(() => checkBootConfig(ofDhcp(dhcp))).toThrow(
    'boot configuration: dhcp.range must not contain 10.77.0.1, the address of this agent',
  );
  const elsewhere = { ...dhcp, range: { first: '10.77.0.2', last: '10.77.0.9' } };
  expect(() => checkBootConfig(ofDhcp(elsewhere))).not.toThrow();
  const short = { ...elsewhere, subnet: { ...subnet, leaseSeconds: 1 } };
  expect(() => checkBootConfig(ofDhcp(short))).toThrow('dhcp.subnet.leaseSeconds');
});

test.each([
  [{}, 'virtualMedia.loaders has to be uefiX64 or uefiArm64, or both'],
  [{ uefiX64: 'missing.efi' }, 'virtualMedia.loaders.uefiX64 has to be a name among loaderFiles'],
])('the reader refuses a boot medium of loaders %o', (loaders, text) => {
  const check = () => checkBootConfig({ ...good, virtualMedia: { loaders } });
  expect(check).toThrow(`boot configuration: ${text}`);
});

describe('of several interfaces', () => {
  const eth1: BootInterface = { name: 'eth1', serverAddress: '10.77.0.1', dhcp: proxyDhcpDefault };
  const eth2 = {
    name: 'eth2',
    serverAddress: '10.78.0.1',
    dhcp: reservation('10.78.0', 2),
  } satisfies BootInterface;
  const check = (...interfaces: readonly BootInterface[]) =>
    checkBootConfig({ ...good, interfaces });

  test('each may have its own way of DHCP', () => {
    expect(() => check(eth1, eth2)).not.toThrow();
  });

  test.each<[string, BootInterface, string]>([
    ['one without a name', { serverAddress: '10.78.0.1', dhcp: { mode: 'off' } }, 'interfaces'],
    ['one name twice', { ...eth2, name: 'eth1' }, 'interfaces has to be one, or all with names'],
    [
      'one address twice',
      { ...eth2, serverAddress: '10.77.0.1' },
      'interfaces has to be with an address each',
    ],
    [
      'a range with its own address',
      { ...eth2, dhcp: reservation('10.78.0', 1) },
      'interfaces[1].dhcp.range must not contain 10.78.0.1',
    ],
    [
      'a subnet in which another interface is',
      { ...eth2, dhcp: reservation('10.77.0', 2) },
      'interfaces[1].dhcp.subnet.network has to be without the address of interface eth1',
    ],
  ])('%s is refused', (_name, other, text) => {
    expect(() => check(eth1, other)).toThrow(`boot configuration: ${text}`);
  });

  test('two that give the same addresses are refused', () => {
    const wide = { ...eth2.dhcp.subnet, network: '10.78.0.0/23' };
    const eth3 = { name: 'eth3', serverAddress: '10.79.0.1', dhcp: { ...eth2.dhcp, subnet: wide } };
    expect(() => check(eth1, eth2, eth3)).toThrow(
      'interfaces[1].dhcp.subnet.network has to be apart from that of interface eth3',
    );
  });

  test('a request is told the address that it was sent to, where hosts are told of it', () => {
    const addresses = ['10.77.0.1', '10.78.0.1'];
    expect(addressAsked(addresses, '10.78.0.1')).toBe('10.78.0.1');
    expect(addressAsked(addresses, '192.0.2.1')).toBeUndefined();
    // For example behind the address of another machine.
    expect(addressAsked(['10.77.0.1'], '192.0.2.1')).toBe('10.77.0.1');
  });
});
