/**
 * The ways in which a machine of the lab may boot: which firmware it has, who gives it its address,
 * and what both ask of QEMU and of the agent's configuration.
 */
import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import type { RamdiskArchitecture } from '@rackwright/runner/ramdisk';
import { UNPACKED, UNPACKED_ARM64 } from '../peers-tests/peer.ts';
import type { SiteWords } from './dhcp-server.ts';
import { LAB_ADDRESS } from './netns.ts';

/**
 * `bios`: SeaBIOS with the network card's iPXE. `uefi`: OVMF with its own PXE, which asks port
 * 4011 and loads by TFTP. `uefi-http`: OVMF with its own HTTP boot; `uefi-http6`: over IPv6.
 * `uefi-media`: OVMF from the CD that the machine's BMC feeds by Redfish. `uefi-secure`: OVMF's PXE
 * under Secure Boot, with Debian's signed shim, GRUB and kernel. `uefi-arm64`: the same on arm64,
 * by AAVMF. `u-boot`: Debian's U-Boot on arm64, by its `pxe` commands.
 */
export const firmwares = [
  ...['bios', 'uefi', 'uefi-http', 'uefi-http6', 'uefi-media', 'uefi-secure', 'uefi-arm64'],
  ...['u-boot'],
] as const;
export type LabFirmware = (typeof firmwares)[number];

/**
 * `proxy`: the site's own server gives addresses. `reservation`: the agent alone does. `off`: the
 * site's server says all, the agent nothing.
 */
export const dhcpModes = ['proxy', 'reservation', 'off'] as const;
export type LabDhcp = (typeof dhcpModes)[number];

/** How the machines of a lab boot. */
export interface BootWay {
  readonly firmware: LabFirmware;
  readonly dhcp: LabDhcp;
  /** `unsigned`: what Secure Boot has to refuse; absent: what fits the firmware. */
  readonly loader?: 'unsigned';
}

/**
 * Whether both go together: where the agent speaks no DHCP, the site's server boots by IPv6. U-Boot
 * hears no proxy.
 */
export function isBootWay({ firmware, dhcp }: BootWay): boolean {
  if (firmware === 'u-boot') return dhcp === 'reservation';
  return speaksIpv6(firmware) === (dhcp === 'off');
}

/** What a scenario gets that asks for nothing else. */
export const USUAL_BOOT: BootWay = { firmware: 'bios', dhcp: 'proxy' };

/** The processor of the machines that have this firmware. */
export function architectureOf(firmware: LabFirmware): RamdiskArchitecture {
  return firmware === 'uefi-arm64' || firmware === 'u-boot' ? 'arm64' : 'amd64';
}

/** QEMU arguments for a board, and the two images of its firmware, as Debian packages them. */
interface UefiBoard {
  readonly args: readonly string[];
  readonly code: string;
  readonly variables: string;
}

const usualBoard: UefiBoard = {
  args: ['-M', 'q35'],
  code: '/usr/share/OVMF/OVMF_CODE_4M.fd',
  variables: '/usr/share/OVMF/OVMF_VARS_4M.fd',
};
/** Under Secure Boot they take what Microsoft's keys have signed, Debian's shim among it. */
const secureBoards: Readonly<Record<RamdiskArchitecture, UefiBoard>> = {
  amd64: {
    // Only code in system management mode may write the variables that say whom to trust.
    args: ['-M', 'q35,smm=on', '-global', 'driver=cfi.pflash01,property=secure,value=on'],
    code: '/usr/share/OVMF/OVMF_CODE_4M.secboot.fd',
    variables: '/usr/share/OVMF/OVMF_VARS_4M.ms.fd',
  },
  arm64: {
    args: ['-M', 'virt'],
    code: '/usr/share/AAVMF/AAVMF_CODE.fd',
    variables: '/usr/share/AAVMF/AAVMF_VARS.ms.fd',
  },
};

/** For QEMU's board `virt`. */
const U_BOOT = '/usr/lib/u-boot/qemu_arm64/u-boot.bin';

const UEFI_LOADER = 'snponly.efi';
const UEFI_LOADER_PATH = `/usr/lib/ipxe/${UEFI_LOADER}`;
/** Has drivers of its own: firmware that boots from a CD has not set up its network card. */
const MEDIUM_LOADER = 'ipxe.efi';
const MEDIUM_LOADER_PATH = `/usr/lib/ipxe/${MEDIUM_LOADER}`;

/** What brings the firmware and the loaders of an architecture. */
const peersCommands = { amd64: 'npm run peers', arm64: 'npm run peers -- --arm64' } as const;

/** Debian's signed loaders, in the folders of unpacked packages. */
const signedLoaders = {
  amd64: {
    folder: UNPACKED,
    shim: 'usr/lib/shim/shimx64.efi.signed',
    /** Looks for its configuration on the disk that it came from. */
    grub: 'usr/lib/grub/x86_64-efi-signed/grubx64.efi.signed',
    /** Looks for it on the server that it came from. */
    grubNetwork: 'usr/lib/grub/x86_64-efi-signed/grubnetx64.efi.signed',
  },
  arm64: {
    folder: UNPACKED_ARM64,
    shim: 'usr/lib/shim/shimaa64.efi.signed',
    grub: 'usr/lib/grub/arm64-efi-signed/grubaa64.efi.signed',
    grubNetwork: 'usr/lib/grub/arm64-efi-signed/grubnetaa64.efi.signed',
  },
} as const;

/** Where `npm run peers` has put it; throws when it is not there. */
export function signedLoader(
  name: 'shim' | 'grub' | 'grubNetwork',
  architecture: RamdiskArchitecture = 'amd64',
): string {
  const { folder, ...paths } = signedLoaders[architecture];
  return present(join(folder, paths[name]), architecture);
}

/** The path of a file that `npm run peers` brings; throws when it is not there. */
function present(path: string, architecture: RamdiskArchitecture): string {
  if (existsSync(path)) return path;
  throw new Error(`${path} is missing; run "${peersCommands[architecture]}"`);
}

/** The virtual drive by the name under which QEMU is asked about it. */
export const VIRTUAL_DRIVE = 'bmc-cd';

/** Whether the firmware runs nothing that is not signed. */
export function isSecure(firmware: LabFirmware): boolean {
  return firmware === 'uefi-secure' || firmware === 'uefi-arm64';
}

/**
 * Options for a host with this firmware. U-Boot hands the kernel a device tree and no SMBIOS: the
 * machine says nothing of itself that its BMC says too.
 */
export function hostPolicy(firmware: LabFirmware): readonly string[] {
  return firmware === 'u-boot' ? ['--allow-unproven-identity'] : [];
}

/** Whether the BMC has a Redfish service and a virtual drive, and the host boots from that. */
export function hasVirtualDrive(firmware: LabFirmware): boolean {
  return firmware === 'uefi-media';
}

/**
 * The MAC of a machine's card by the last pair of digits. U-Boot gives the card the MAC of its
 * built-in environment, so that all such machines have the same.
 */
export function machineMac(firmware: LabFirmware, lastPair: string): string {
  return firmware === 'u-boot' ? '52:52:52:52:52:52' : `52:54:00:77:00:${lastPair}`;
}

/** Whether the firmware boots by HTTP over IPv6. */
export function speaksIpv6(firmware: LabFirmware): boolean {
  return firmware === 'uefi-http6';
}

/** What the site's own server says to machines with this firmware. */
export function siteWords(firmware: LabFirmware): SiteWords {
  // GRUB looks for its server there alone, and knows nothing of what a proxy offers.
  if (isSecure(firmware)) return { nextServer: LAB_ADDRESS.agent };
  if (!speaksIpv6(firmware)) return {};
  const root = `http://[${LAB_ADDRESS.agent6}]:8080`;
  const scriptUrl = `${root}/boot/\${mac:hexhyp}/script.ipxe`;
  return { boot6: { loaderUrl: `${root}/files/${UEFI_LOADER}`, scriptUrl } };
}

/**
 * QEMU arguments for the machine's board and firmware. UEFI keeps its variables from one power-on
 * to the next, as a real machine does, in a file in `folder` that this makes.
 */
export function boardArgs(firmware: LabFirmware, folder: string): string[] {
  if (firmware === 'bios') return ['-M', 'pc,graphics=off'];
  if (firmware === 'u-boot') return ['-M', 'virt', '-bios', present(U_BOOT, 'arm64')];
  const secure = isSecure(firmware);
  const architecture = architectureOf(firmware);
  const board = secure ? secureBoards[architecture] : usualBoard;
  const variables = join(folder, 'uefi-variables.fd');
  copyFileSync(present(board.variables, architecture), variables);
  // IPv6 first would cost half a minute; without IPv4 PXE the first boot option is HTTPv4.
  const hasPxe = firmware === 'uefi' || isSecure(firmware);
  const off = hasPxe ? ['IPv6PXESupport'] : ['IPv4PXESupport', 'IPv6PXESupport'];
  return [
    ...board.args,
    ...['-drive', `if=pflash,format=raw,readonly=on,file=${present(board.code, architecture)}`],
    ...['-drive', `if=pflash,format=raw,file=${variables}`],
    ...['-device', 'virtio-rng-pci'], // without entropy its network stack does not start
    ...off.flatMap((name) => ['-fw_cfg', `name=opt/org.tianocore/${name},string=n`]),
  ];
}

/**
 * QEMU arguments for what the BMC has ordered, `n` network, `c` disk or `d` CD, and what they add
 * to the network card; `own`: nothing was ordered, and UEFI goes by the order in its variables.
 * U-Boot always tries the disks first. UEFI knows no order of device classes, only the index of a
 * device; its card has no option ROM, which would be iPXE instead of the firmware's own network
 * stack.
 */
export function bootOrder(
  firmware: LabFirmware,
  order: 'n' | 'c' | 'd' | 'own',
): { readonly args: readonly string[]; readonly card: string; readonly firstDisk: string } {
  if (firmware === 'bios') return { args: ['-boot', `order=${order}`], card: '', firstDisk: '' };
  if (firmware === 'u-boot') return { args: [], card: ',romfile=', firstDisk: '' };
  const first = ',bootindex=1';
  return {
    args: hasVirtualDrive(firmware) ? virtualDriveArgs(order === 'd' ? first : '') : [],
    card: `,romfile=${order === 'n' ? first : ''}`,
    firstDisk: order === 'c' ? first : '',
  };
}

/** On USB, as that of a real BMC; empty. */
function virtualDriveArgs(first: string): string[] {
  return [
    ...['-device', 'qemu-xhci,id=bmc-usb', '-device', 'usb-bot,id=bmc-drive,bus=bmc-usb.0'],
    ...['-device', `scsi-cd,id=${VIRTUAL_DRIVE},bus=bmc-drive.0${first}`],
  ];
}

/** What the agent's configuration has to say for these machines. */
export function agentBootConfig({ firmware, dhcp, loader }: BootWay): object {
  const { network, leasesFrom: first, leasesTo: last, prefix } = LAB_ADDRESS;
  const reservation = { subnet: { network: `${network}/${prefix}` }, range: { first, last } };
  const architecture = architectureOf(firmware);
  const suffix = architecture === 'arm64' ? 'aa64' : 'x64';
  const loaderFiles =
    isSecure(firmware) && loader !== 'unsigned'
      ? [
          { name: `shim${suffix}.efi`, path: signedLoader('shim', architecture) },
          // The shim asks for it by this name.
          { name: `grub${suffix}.efi`, path: signedLoader('grubNetwork', architecture) },
        ]
      : [{ name: UEFI_LOADER, path: UEFI_LOADER_PATH }];
  const mediumFiles = hasVirtualDrive(firmware)
    ? [{ name: MEDIUM_LOADER, path: MEDIUM_LOADER_PATH }]
    : [];
  return {
    ...(speaksIpv6(firmware) ? { serverAddress6: LAB_ADDRESS.agent6 } : {}),
    dhcp: { mode: dhcp, ...(dhcp === 'reservation' ? reservation : {}) },
    ...(firmware === 'bios' || firmware === 'u-boot'
      ? {}
      : {
          loaders: { [architecture === 'arm64' ? 'uefiArm64' : 'uefiX64']: loaderFiles[0]?.name },
          loaderFiles: [...loaderFiles, ...mediumFiles],
          ...(hasVirtualDrive(firmware)
            ? { virtualMedia: { loaders: { uefiX64: MEDIUM_LOADER } } }
            : {}),
          bmc: { firmware: 'uefi' },
        }),
  };
}
