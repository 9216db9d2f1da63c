/** iPXE scripts of hosts that run without a disk; `script.ts` lists the allowed words. */

import { hyphenatedMac, type Mac } from '@rackwright/dhcp';
import type { HostName } from '@rackwright/messages';
import type { NetbootBoot } from './deploy-pages.ts';
import { lines, plain } from './script.ts';
import type { BootUrls } from './urls.ts';

/** Between two tries: such a host has nothing else to boot, and never gives up. */
export const retrySeconds = 5;
const waitingCharactersMax = 200;

export interface ImageScript {
  readonly mac: Mac;
  readonly hostName: HostName;
  readonly urls: BootUrls;
  readonly boot: NetbootBoot & { readonly kind: 'ready' };
}

/**
 * Loads the image's kernel and ramdisks and starts them; fetches the script again when one is
 * missing.
 */
export function imageScript(script: ImageScript): string {
  const { mac, hostName, urls, boot } = script;
  const { kernel, initrds } = boot;
  // UEFI kernels look up the ramdisks by these names among the files that iPXE has loaded.
  const args = [...initrds.map((_, index) => `initrd=initrd${index}`), ...imageArgs(script)];
  const loads = [
    `kernel --name kernel ${urls.blob(kernel)} ${args.join(' ')}`,
    ...initrds.map((hex, index) => `initrd --name initrd${index} ${urls.blob(hex)}`),
  ];
  return lines([
    '#!ipxe',
    `echo Rackwright: ${plain(hostName)} boots its image over the network`,
    `${loads.join(' && ')} && boot ||`,
    ...again(urls.script(mac)),
  ]);
}

/** The kernel's command line, the same for each loader. */
export function imageArgs({ mac, urls, boot }: ImageScript): string[] {
  const { kernelArguments, seedPath } = boot;
  return [
    ...kernelArguments,
    `BOOTIF=01-${hyphenatedMac(mac)}`,
    // Older releases of cloud-init fetch over HTTP only under this name.
    ...(seedPath === undefined ? [] : [`ds=nocloud-net;s=${urls.root}${seedPath}`]),
  ];
}

/** Its kernel is not here yet: it asks again until it is. */
export function waitingScript(hostName: HostName, text: string, scriptUrl: string): string {
  return lines([
    '#!ipxe',
    `echo Rackwright: ${plain(hostName)} waits for its image: ${waitingText(text)}`,
    ...again(scriptUrl),
  ]);
}

/** Text for a person that means nothing to a loader. */
export function waitingText(text: string): string {
  return text.slice(0, waitingCharactersMax).replace(/[^A-Za-z0-9 ,.:_-]/g, '_');
}

function again(scriptUrl: string): string[] {
  return [
    ':again',
    'imgfree',
    `sleep ${retrySeconds}`,
    `chain --replace --autofree ${scriptUrl} || goto again`,
  ];
}
