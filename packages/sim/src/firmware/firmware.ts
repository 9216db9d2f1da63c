/**
 * Firmware of a software machine: from its first DHCP broadcast to the kernel that a script starts.
 * Real packets on loopback, in the three forms in which machines ask.
 *
 * F1 Every byte comes over the network; nothing is taken from the disk of the agent.
 * F2 No grant, no offer or a script that exits means the local disk, never an error.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type BootOffer, DhcpClient } from './dhcp-client.ts';
import { fetchByHttp } from './http-client.ts';
import { type IpxeEnd, runIpxeScript } from './ipxe-script.ts';
import type { BootIdentity, BootNetwork, FirmwareForm } from './network.ts';
import { fetchByTftp } from './tftp-client.ts';

export interface SimulatedFirmware {
  readonly form: FirmwareForm;
  readonly identity: BootIdentity;
  readonly network: BootNetwork;
  /** What a screen on the machine would show. */
  print(text: string): void;
}

export type BootEnd =
  | {
      readonly kind: 'kernel';
      readonly commandLine: string;
      readonly loaderBytes: number;
      readonly kernelBytes: number;
      readonly initrdBytes: number;
    }
  | { readonly kind: 'localDisk'; readonly reason: string };

/** RFC 7440; what EDK2 offers. */
const uefiWindowBlocks = 4;

/** One start from the network. Throws when there is no network or a file cannot be fetched. */
export async function netboot(firmware: SimulatedFirmware): Promise<BootEnd> {
  const dhcp = await DhcpClient.open(firmware.network, firmware.identity, firmware.form);
  try {
    const first = await dhcp.acquire('firmware');
    if (first.boot === undefined) return { kind: 'localDisk', reason: 'nobody offered a boot' };
    const loader = await loadLoader(firmware, dhcp, first.address, first.boot);
    firmware.print(`${firmware.form}: loader of ${loader.length} bytes, iPXE starts`);
    const second = await dhcp.acquire('ipxe');
    if (second.boot === undefined) return { kind: 'localDisk', reason: 'iPXE found no script' };
    const end = await runScript(firmware, second.address, second.boot.fileName);
    return bootEnd(end, loader.length);
  } finally {
    dhcp.close();
  }
}

async function loadLoader(
  { form, network, print }: SimulatedFirmware,
  dhcp: DhcpClient,
  address: string,
  offer: BootOffer,
): Promise<Uint8Array> {
  print(`${form}: ${address}, boot file ${offer.fileName} of ${offer.serverAddress}`);
  if (form === 'uefiHttp') return await fetchByHttp(offer.fileName, address);
  const bootOffer =
    form === 'uefi' ? await dhcp.askBootServer(address, offer.serverAddress) : offer;
  if (bootOffer === undefined) throw new Error(`${offer.serverAddress} is silent on the PXE port`);
  return await fetchByTftp({
    address,
    server: bootOffer.serverAddress,
    port: network.tftpPort,
    fileName: bootOffer.fileName,
    windowBlocks: form === 'uefi' ? uefiWindowBlocks : 1,
  });
}

async function runScript(
  firmware: SimulatedFirmware,
  address: string,
  url: string,
): Promise<IpxeEnd> {
  const script = Buffer.from(await fetchByHttp(url, address)).toString('utf8');
  return await runIpxeScript(script, {
    fetch: (file) => fetchByHttp(file, address),
    sleep: (durationMs) => sleep(durationMs),
    print: (text) => firmware.print(`iPXE: ${text}`),
  });
}

function bootEnd(end: IpxeEnd, loaderBytes: number): BootEnd {
  switch (end.kind) {
    case 'exit':
      return { kind: 'localDisk', reason: `the script exits with ${end.code}` };
    case 'failed':
      return { kind: 'localDisk', reason: end.message };
    case 'boot': {
      const initrd = end.others.find(({ name }) => name === 'initrd');
      if (initrd === undefined) return { kind: 'localDisk', reason: 'the kernel has no ramdisk' };
      return {
        kind: 'kernel',
        commandLine: end.kernel.arguments,
        loaderBytes,
        kernelBytes: end.kernel.bytes.length,
        initrdBytes: initrd.bytes.length,
      };
    }
  }
}
