/**
 * The ways in which a machine of the lab may boot: which firmware it has, who gives it its address,
 * and what both ask of QEMU and of the agent's configuration.
 */
import { copyFileSync } from 'node:fs';
import { join } from 'node:path';
import { LAB_ADDRESS } from './netns.ts';

/**
 * `bios`: SeaBIOS with the network card's iPXE. `uefi`: OVMF with its own PXE, which asks port
 * 4011 and loads by TFTP. `uefi-http`: OVMF with its own HTTP boot.
 */
export const firmwares = ['bios', 'uefi', 'uefi-http'] as const;
export type LabFirmware = (typeof firmwares)[number];

/** `proxy`: the site's own server gives addresses. `reservation`: the agent alone does. */
export const dhcpModes = ['proxy', 'reservation'] as const;
export type LabDhcp = (typeof dhcpModes)[number];

/** How the machines of a lab boot. */
export interface BootWay {
  readonly firmware: LabFirmware;
  readonly dhcp: LabDhcp;
}

/** What a scenario gets that asks for nothing else. */
export const USUAL_BOOT: BootWay = { firmware: 'bios', dhcp: 'proxy' };

const UEFI_CODE = '/usr/share/OVMF/OVMF_CODE_4M.fd';
const UEFI_VARIABLES = '/usr/share/OVMF/OVMF_VARS_4M.fd';
const UEFI_LOADER = 'snponly.efi';
const UEFI_LOADER_PATH = `/usr/lib/ipxe/${UEFI_LOADER}`;

/**
 * QEMU arguments for the machine's board and firmware. UEFI keeps its variables from one power-on
 * to the next, as a real machine does, in a file in `folder` that this makes.
 */
export function boardArgs(firmware: LabFirmware, folder: string): string[] {
  if (firmware === 'bios') return ['-M', 'pc,graphics=off'];
  const variables = join(folder, 'uefi-variables.fd');
  copyFileSync(UEFI_VARIABLES, variables);
  // IPv6 first would cost half a minute; without IPv4 PXE the first boot option is HTTPv4.
  const off = firmware === 'uefi' ? ['IPv6PXESupport'] : ['IPv4PXESupport', 'IPv6PXESupport'];
  return [
    ...['-M', 'q35'],
    ...['-drive', `if=pflash,format=raw,readonly=on,file=${UEFI_CODE}`],
    ...['-drive', `if=pflash,format=raw,file=${variables}`],
    ...['-device', 'virtio-rng-pci'], // without entropy its network stack does not start
    ...off.flatMap((name) => ['-fw_cfg', `name=opt/org.tianocore/${name},string=n`]),
  ];
}

/**
 * QEMU arguments for what the BMC has ordered, `n` network or `c` disk, and what they add to the
 * network card; `own`: nothing was ordered, and UEFI goes by the order in its variables. UEFI knows
 * no order of device classes, only the index of a device; its card has no option ROM, which would
 * be iPXE instead of the firmware's own network stack.
 */
export function bootOrder(
  firmware: LabFirmware,
  order: 'n' | 'c' | 'own',
): { readonly args: readonly string[]; readonly card: string; readonly firstDisk: string } {
  if (firmware === 'bios') return { args: ['-boot', `order=${order}`], card: '', firstDisk: '' };
  const first = ',bootindex=1';
  return {
    args: [],
    card: `,romfile=${order === 'n' ? first : ''}`,
    firstDisk: order === 'c' ? first : '',
  };
}

/** What the agent's configuration has to say for these machines. */
export function agentBootConfig({ firmware, dhcp }: BootWay): object {
  const { network, leasesFrom: first, leasesTo: last, prefix } = LAB_ADDRESS;
  const reservation = { subnet: { network: `${network}/${prefix}` }, range: { first, last } };
  const loader = { name: UEFI_LOADER, path: UEFI_LOADER_PATH };
  return {
    dhcp: { mode: dhcp, ...(dhcp === 'reservation' ? reservation : {}) },
    ...(firmware === 'bios'
      ? {}
      : {
          loaders: { uefiX64: UEFI_LOADER },
          loaderFiles: [loader],
          bmc: { firmware: 'uefi' },
        }),
  };
}
