/**
 * Which boot firmware a request comes from, by its options: vendor class (option 60), user class
 * (77), architecture (93), iPXE's own option (175); that of a Raspberry Pi by its MAC too.
 */
import type { Mac } from './mac.ts';
import { dhcpOption } from './options.ts';
import { isRaspberryPi } from './raspberry-pi.ts';
import type { SideOptions } from './side-options.ts';

/** The platform that a boot loader is built for. `other` has none of ours. */
export type BootPlatform = 'bios' | 'uefiX64' | 'uefiIa32' | 'uefiArm64' | 'other';

/**
 * The boot method of a client. `pxe` loads by TFTP, `httpBoot` by HTTP, `ipxe` runs scripts,
 * `uBoot` runs scripts of its own by TFTP, `raspberryPi` loads its firmware's files by TFTP.
 */
export type BootClientKind = 'pxe' | 'httpBoot' | 'ipxe' | 'uBoot' | 'raspberryPi';

export interface BootClient {
  readonly kind: BootClientKind;
  readonly platform: BootPlatform;
}

/** IANA's "Processor Architecture Types"; early x64 firmware used 9 (EBC). */
const platforms: ReadonlyMap<number, BootPlatform> = new Map([
  [0, 'bios'],
  [6, 'uefiIa32'],
  [7, 'uefiX64'],
  [9, 'uefiX64'],
  [11, 'uefiArm64'],
  [15, 'uefiIa32'],
  [16, 'uefiX64'],
  [17, 'uefiX64'],
  [19, 'uefiArm64'],
]);

/** The boot client behind a packet, or undefined when it is no network boot. */
export function bootClient(side: SideOptions, mac: Mac): BootClient | undefined {
  const vendorClass = side.read(dhcpOption.vendorClass) ?? '';
  const platform = platformOf(side, vendorClass);
  // iPXE keeps the vendor class of the firmware that it replaces, so it is checked first.
  if (isIpxe(side)) return { kind: 'ipxe', platform };
  if (vendorClass.startsWith('PXEClient')) {
    // UEFI firmware and U-Boot on the same board name their own architecture.
    const isOwn = platform === 'bios' && isRaspberryPi(mac);
    return { kind: isOwn ? 'raspberryPi' : 'pxe', platform };
  }
  if (vendorClass.startsWith('HTTPClient')) return { kind: 'httpBoot', platform };
  // It calls itself "PXEClient" instead when it asks for an EFI loader.
  if (vendorClass.startsWith('U-Boot')) return { kind: 'uBoot', platform };
  return undefined;
}

function isIpxe(side: SideOptions): boolean {
  const userClass = side.read(dhcpOption.userClass);
  return userClass?.classes.includes('iPXE') === true || side.has(dhcpOption.ipxe);
}

function platformOf(side: SideOptions, vendorClass: string): BootPlatform {
  const listed = side.read(dhcpOption.architectures);
  // Firmware without option 93 says it in its class: "PXEClient:Arch:00007:UNDI:003016".
  const named = /:Arch:(\d{5})/.exec(vendorClass)?.[1];
  const architectures = listed ?? [named === undefined ? 0 : Number(named)];
  const known = architectures.flatMap((one) => platforms.get(one) ?? []);
  return known[0] ?? 'other';
}
