/**
 * The boot parts of an answer, the same for both answering programs: the proxy sends only these,
 * the server sends them along with the address.
 *
 * B1 iPXE gets its script, also when it claims to be something else; a boot loader would load
 *    itself for ever.
 * B2 A host that may not start the runner: plain PXE firmware, that of a Raspberry Pi and U-Boot
 *    get no boot and so go on to their disk, the others get a script that exits to local boot.
 *    Unknown hosts get no boot: theirs belongs to another server on this network.
 * B3 Where there are no files for a Raspberry Pi, its firmware is the PXE firmware that it calls
 *    itself.
 */

import type { BootClient, BootClientKind, BootPlatform } from './client.ts';
import type { Mac } from './mac.ts';
import { discoveryControl, type PxeOptions } from './option/pxe.ts';
import { dhcpOption, writeOption } from './options.ts';
import { raspberryPiOptions } from './raspberry-pi.ts';
import type { SideOptions } from './side-options.ts';

export type DhcpBootPermission = 'runner' | 'localBoot' | 'unknownHost';

export interface BootSettings {
  /** Our IPv4 address on the hosts' network. */
  readonly serverAddress: string;
  /**
   * Name of the boot loader of the host with this MAC, for each platform that has one; undefined:
   * the host's profile is unknown.
   */
  loadersOf(mac: string): Readonly<Partial<Record<BootPlatform, string>>> | undefined;
  /** The URL of iPXE's script. */
  scriptUrl(mac: Mac): string;
  /** The URL of a loader for UEFI HTTP boot. */
  loaderUrl(mac: Mac, loader: string): string;
  /** The name by which TFTP serves a loader. */
  loaderPath(mac: Mac, loader: string): string;
  /** Whether TFTP serves the files of Raspberry Pi firmware. */
  readonly servesRaspberryPi: boolean;
}

/** The client, as far as booting is concerned. */
export interface BootAsker {
  readonly client: BootClient;
  /** Lower case, with colons. */
  readonly mac: Mac;
  /** Option 43 of the request; absent where there is none or it means something else. */
  readonly pxe: PxeOptions | undefined;
}

export interface BootParts {
  readonly bootFile: string;
  readonly options: readonly (readonly [code: number, value: Uint8Array])[];
}

/** The name by which TFTP serves U-Boot's script; its boards have it built in. */
export const uBootScriptName = 'boot.scr.uimg';

/** The one server in the list and menu of plain PXE; numbers from 0x8000 on are free to use. */
const bootServerType = 0x8000;

const meanPxe: readonly BootClientKind[] = ['pxe', 'ipxe', 'raspberryPi'];
/** They take no answer for a reason to boot their disk. */
const goOn: readonly BootClientKind[] = ['pxe', 'uBoot', 'raspberryPi'];

/** Option 43 of a client to which it means PXE. */
export function readPxe(side: SideOptions, client: BootClient): PxeOptions | undefined {
  return meanPxe.includes(client.kind) ? side.read(dhcpOption.pxe) : undefined;
}

/** The boot parts for the client, or why it gets none. */
export function bootParts(
  { client, mac, pxe }: BootAsker,
  permission: DhcpBootPermission,
  settings: BootSettings,
):
  | { readonly kind: 'boot'; readonly parts: BootParts }
  | { readonly kind: 'nothing'; readonly reason: string } {
  if (permission === 'unknownHost') return nothing('unknown host');
  const loaders = settings.loadersOf(mac);
  if (loaders === undefined) return nothing('a boot profile that is not configured');
  if (client.kind === 'ipxe') {
    const control = { discoveryControl: discoveryControl.bootFileAtOnce, others: [] };
    return boot('PXEClient', settings.scriptUrl(mac), control);
  }
  if (goOn.includes(client.kind) && permission === 'localBoot') return nothing('no boot grant');
  if (client.kind === 'uBoot') {
    // It reads no option that names a boot file.
    return { kind: 'boot', parts: { bootFile: uBootScriptName, options: [] } };
  }
  if (client.kind === 'raspberryPi' && settings.servesRaspberryPi) {
    const options = raspberryPiOptions(mac, settings.serverAddress);
    return { kind: 'boot', parts: { bootFile: '', options } };
  }
  const loader = loaders[client.platform];
  if (loader === undefined) return nothing(`no boot loader for ${client.platform}`);
  if (client.kind === 'httpBoot') {
    return boot('HTTPClient', settings.loaderUrl(mac, loader), undefined);
  }
  const item = pxe?.bootItem;
  if (item !== undefined && item.type !== bootServerType) {
    return nothing(`boot server type ${item.type}, ours is ${bootServerType}`);
  }
  const path = settings.loaderPath(mac, loader);
  return boot('PXEClient', path, pxeOptions(item, settings.serverAddress));
}

function boot(
  vendorClass: 'PXEClient' | 'HTTPClient',
  bootFile: string,
  pxe: PxeOptions | undefined,
): { readonly kind: 'boot'; readonly parts: BootParts } {
  const options = [
    writeOption(dhcpOption.vendorClass, vendorClass),
    // EDK2's HTTP boot reads the URL from the option, PXE firmware the name from the field.
    ...(vendorClass === 'HTTPClient' ? [writeOption(dhcpOption.bootFileName, bootFile)] : []),
    ...(pxe === undefined ? [] : [writeOption(dhcpOption.pxe, pxe)]),
  ];
  return { kind: 'boot', parts: { bootFile, options } };
}

/**
 * The full form of PXE: firmware that does not take the boot file at once finds the same server
 * in the list and the menu, chooses it without a prompt, and asks the PXE port with its number.
 */
function pxeOptions(bootItem: PxeOptions['bootItem'], serverAddress: string): PxeOptions {
  const { noBroadcast, noMulticast, bootFileAtOnce } = discoveryControl;
  return {
    discoveryControl: noBroadcast | noMulticast | bootFileAtOnce,
    bootServers: [{ type: bootServerType, addresses: [serverAddress] }],
    bootMenu: [{ type: bootServerType, description: 'Rackwright' }],
    menuPrompt: { timeoutSeconds: 0, prompt: 'Rackwright' },
    ...(bootItem === undefined ? {} : { bootItem }),
    others: [],
  };
}

function nothing(reason: string): { readonly kind: 'nothing'; readonly reason: string } {
  return { kind: 'nothing', reason };
}
