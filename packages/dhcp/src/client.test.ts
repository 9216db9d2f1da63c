import { expect, test } from 'vitest';
import { type BootClient, bootClient as clientOf } from './client.ts';
import { macOf } from './identifiers.ts';
import { dhcpOption, writeOption } from './options.ts';
import { type DhcpPacket, decodeDhcp } from './packet.ts';
import { SideOptions } from './side-options.ts';
import { captures } from './test-captures.ts';

const bootClient = (packet: DhcpPacket): BootClient | undefined =>
  clientOf(new SideOptions(packet), macOf(packet));

const bare = { ...decodeDhcp(captures.edk2PxeDiscover), options: new Map() };

function withOptions(...options: (readonly [number, Uint8Array])[]): DhcpPacket {
  return { ...bare, options: new Map(options) };
}

test.each([
  ['ipxeRomDiscover', { kind: 'ipxe', platform: 'bios' }],
  ['edk2PxeDiscover', { kind: 'pxe', platform: 'uefiX64' }],
  ['edk2PxeRequest', { kind: 'pxe', platform: 'uefiX64' }],
  ['edk2HttpDiscover', { kind: 'httpBoot', platform: 'uefiX64' }],
  ['chainedIpxeDiscover', { kind: 'ipxe', platform: 'uefiX64' }],
  ['uBootDiscover', { kind: 'uBoot', platform: 'other' }],
] as const)('the detection knows the firmware of %s', (name, client) => {
  expect(bootClient(decodeDhcp(captures[name]))).toEqual(client);
});

test('the detection ignores a machine that only wants an address', () => {
  expect(bootClient(bare)).toBeUndefined();
  const dhclient = withOptions(writeOption(dhcpOption.vendorClass, 'MSFT 5.0'));
  expect(bootClient(dhclient)).toBeUndefined();
});

test('iPXE is known by either form of its user class, or by its own option alone', () => {
  const classes = ['iPXE'];
  const pxeClient = writeOption(dhcpOption.vendorClass, 'PXEClient:Arch:00007:UNDI:003010');
  for (const mark of [
    writeOption(dhcpOption.userClass, { form: 'plain', classes }),
    writeOption(dhcpOption.userClass, { form: 'listed', classes: ['lab', ...classes] }),
    writeOption(dhcpOption.ipxe, [[176, Uint8Array.of(1)]]),
  ]) {
    expect(bootClient(withOptions(pxeClient, mark))?.kind).toBe('ipxe');
  }
});

test.each([
  [0, 'bios'],
  [6, 'uefiIa32'],
  [7, 'uefiX64'],
  [9, 'uefiX64'],
  [11, 'uefiArm64'],
  [19, 'uefiArm64'],
  [27, 'other'],
])('the detection takes architecture %i for %s', (architecture, platform) => {
  const packet = withOptions(
    writeOption(dhcpOption.vendorClass, 'PXEClient'),
    writeOption(dhcpOption.architectures, [architecture]),
  );
  expect(bootClient(packet)?.platform).toBe(platform);
});

test('the detection takes U-Boot that asks for an EFI loader for UEFI firmware', () => {
  const packet = withOptions(
    writeOption(dhcpOption.vendorClass, 'PXEClient:Arch:00011:UNDI:003000'),
    writeOption(dhcpOption.architectures, [11]),
  );
  expect(bootClient(packet)).toEqual({ kind: 'pxe', platform: 'uefiArm64' });
});

test('the architecture is read from the vendor class when option 93 is missing', () => {
  const named = writeOption(dhcpOption.vendorClass, 'PXEClient:Arch:00011:UNDI:003016');
  expect(bootClient(withOptions(named))?.platform).toBe('uefiArm64');
  const unnamed = writeOption(dhcpOption.vendorClass, 'PXEClient');
  expect(bootClient(withOptions(unnamed))?.platform).toBe('bios');
});

test.each([
  [[16, 7], 'uefiX64'],
  [[65_000, 11], 'uefiArm64'],
  [[65_000], 'other'],
] as const)('the first known one of the listed architectures %j is taken', (listed, platform) => {
  const packet = withOptions(
    writeOption(dhcpOption.vendorClass, 'PXEClient'),
    writeOption(dhcpOption.architectures, listed),
  );
  expect(bootClient(packet)?.platform).toBe(platform);
});

test('the detection ignores a malformed architecture, and says so', () => {
  const packet = withOptions(writeOption(dhcpOption.vendorClass, 'PXEClient'), [
    93,
    Uint8Array.of(7),
  ]);
  const side = new SideOptions(packet);
  expect(clientOf(side, macOf(bare))).toEqual({ kind: 'pxe', platform: 'bios' });
  expect(side.ignored).toMatchObject([{ code: 93 }]);
});
