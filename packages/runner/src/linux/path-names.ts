/**
 * The names that udev gives to a disk by the place where it is plugged in (/dev/disk/by-path), made
 * from /sys as udev makes them: the ramdisk runs no udev. A place that is not known has no name.
 */
import { dirname } from 'node:path';
import { namesIn, readText } from './sys-files.ts';

/** The nearest PCI function above. */
const pciForm = /\/([\da-f]{4,8}:[\da-f]{2}:[\da-f]{2}\.[0-7])(?=\/)/g;
const scsiForm = /^(.*\/host(\d+))\/.*\/(\d+):(\d+):(\d+):(\d+)(?:\/|$)/;

/** `path`: of a disk that is no NVMe namespace, as /sys/block leads there. */
export async function pathNames(path: string): Promise<string[]> {
  const pci = pciOf(path);
  if (pci === undefined) return [];
  const scsi = scsiForm.exec(path);
  if (scsi === null) {
    return /\/virtio\d+\//.test(path) ? [`pci-${pci}`, `virtio-pci-${pci}`] : [];
  }
  const [, hostFolder = '', host = '', , bus = '', target = '', lun = ''] = scsi;
  const [, ataFolder = '', ata = ''] = /^(.*\/(ata\d+))\//.exec(path) ?? [];
  if (ata !== '') {
    const port = await readText(ataFolder, 'ata_port', ata, 'port_no');
    if (port === '') return [];
    const behind = bus === '0' ? target : `${bus}.0`;
    return [`pci-${pci}-ata-${port}.${behind}`, `pci-${pci}-ata-${port}`];
  }
  const sas = await sasName(path);
  if (sas !== undefined) return sas === '' ? [] : [`pci-${pci}-sas-${sas}-lun-${lun}`];
  const hosts = (await namesIn(dirname(hostFolder))).filter((name) => /^host\d+$/.test(name));
  const first = Math.min(...hosts.map((name) => Number(name.slice('host'.length))));
  const own = Number.isFinite(first) ? Number(host) - first : 0;
  return [`pci-${pci}-scsi-${own}:${bus}:${target}:${lun}`];
}

/** `path`: of an NVMe controller. */
export function nvmePathNames(path: string, namespaceIds: readonly number[]): string[] {
  const pci = pciOf(path);
  return pci === undefined ? [] : namespaceIds.map((id) => `pci-${pci}-nvme-${id}`);
}

function pciOf(path: string): string | undefined {
  return [...path.matchAll(pciForm)].at(-1)?.[1];
}

/** Undefined: not on SAS; empty: it is, at an unknown place. */
async function sasName(path: string): Promise<string | undefined> {
  const [, above = '', end = ''] = /^(.*)\/(end_device-[\d:]+)\//.exec(path) ?? [];
  if (end === '') return undefined;
  const phy = await readText(above, end, 'sas_device', end, 'phy_identifier');
  if (phy === '') return '';
  const [, folder = '', expander = ''] = /^(.*\/(expander-[\d:]+))\//.exec(`${above}/`) ?? [];
  if (expander === '') return `phy${phy}`;
  const address = await readText(folder, 'sas_device', expander, 'sas_address');
  return address === '' ? '' : `exp${address}-phy${phy}`;
}
