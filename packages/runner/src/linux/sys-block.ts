/**
 * Facts of the block devices that the kernel shows in /sys. Reads only.
 *
 * Invariants:
 * 1. Every entry of /sys/block is in the answer, but for namespaces and paths that belong to an
 *    NVMe controller in the answer, and replay-protected blocks, which hold no data of ours. How a
 *    device is attached follows from its place in /sys; when that is inconclusive, it is `unknown`,
 *    which is refused later.
 * 2. A device in use (mount, swap, device mapper, md) names its users.
 */
import { join } from 'node:path';
import type { DeviceFacts, MediaType, Partition, Region, Transport } from '@rackwright/erasure';
import { pathNames } from './path-names.ts';
import { namesIn, readBytes, readNumber, readText, resolvePath } from './sys-files.ts';
import { isMemoryBlock, readMemoryCapacity, readMemorySerial } from './sys-memory.ts';
import type { SysRoots } from './sys-roots.ts';

/** Sizes and starts in /sys are in sectors of 512 bytes, for devices of every block size. */
const sectorBytes = 512;
const textBytesMax = 256;

/** Device numbers ("8:1") that are mounted or swapped on, with their use. */
export type InUse = ReadonlyMap<string, string>;

/** Facts of one entry of /sys/block that is no NVMe namespace. */
export async function readBlockDevice(
  roots: SysRoots,
  name: string,
  inUse: InUse,
): Promise<DeviceFacts> {
  const folder = join(roots.sys, 'block', name);
  const region = await readRegion(folder, name);
  const path = await resolvePath(folder);
  const transport = transportOf(name, path, await readText(folder, 'dm/uuid'));
  const capacity =
    transport === 'pmem' ? await readMemoryCapacity(path, region.sizeBytes) : undefined;
  const rotational = await readText(folder, 'queue/rotational');
  const type = isCard(name) ? 'flashCard' : mediaTypeOf(transport, rotational);
  return {
    name,
    transport,
    model: await readModel(folder),
    ...(await readNames(folder, name)),
    firmware: cleanText(await readText(folder, 'device/rev')),
    sizeBytes: region.sizeBytes,
    rotational: rotational === '1',
    removable: (await readText(folder, 'removable')) === '1',
    readOnly: (await readText(folder, 'ro')) === '1',
    ...(await readDiscardZeroes(folder)),
    discardSupported: (await readNumber(folder, 'queue/discard_max_bytes')) > 0,
    raidVolume: await readRaidVolume(folder, path),
    holders: await readHolders(folder, name, inUse),
    // A drive without a medium has no region.
    regions: region.sizeBytes === 0 ? [] : [region],
    partitions: await readPartitions(folder, name),
    paths: await pathNames(path),
    ...(await readManufacturer(folder)),
    ...(type === undefined ? {} : { mediaType: type }),
    ...(capacity === undefined ? {} : { capacity }),
  };
}

/** Identifiers of a device; empty where it reports none. */
export async function readNames(
  folder: string,
  name: string,
): Promise<Pick<DeviceFacts, 'serial' | 'wwn'>> {
  return {
    // A boot partition reports the serial of its device, and is no device.
    serial: isMmcBoot(name) ? '' : cleanText(await readSerial(folder, name)),
    wwn: isMmcBoot(name) ? '' : await readWwn(folder),
  };
}

/**
 * Which attachment of a disk this is, counted since the kernel's start: no two have one number.
 * Undefined for a kernel that does not count (before Linux 5.15).
 */
export async function readAttachment(folder: string): Promise<number | undefined> {
  return (await readNumber(folder, 'diskseq')) || undefined;
}

/** SCSI and ATA report vendor and model; cards have a name. */
async function readModel(folder: string): Promise<string> {
  const model = [await readText(folder, 'device/vendor'), await readText(folder, 'device/model')];
  const text = cleanText(model.join(' '));
  return text === '' ? cleanText(await readText(folder, 'device/name')) : text;
}

/** A card's CID holds maker, name, serial number and date, and no two cards have the same. */
async function readWwn(folder: string): Promise<string> {
  const wwid = (await readText(folder, 'device/wwid')) || (await readText(folder, 'wwid'));
  const cid = await readText(folder, 'device/cid');
  return worldWideName(wwid) || (/^[\da-f]{32}$/.test(cid) ? `cid.${cid}` : '');
}

/** Behind a bridge an ATA disk reports `ATA` as its maker; virtio reports an id. */
async function readManufacturer(folder: string): Promise<Pick<DeviceFacts, 'manufacturer'>> {
  const vendor = cleanText(await readText(folder, 'device/vendor'));
  const card = await readText(folder, 'device/manfid');
  const manufacturer = card === '' ? vendor : `MMC manufacturer ${card}`;
  return manufacturer === '' || manufacturer === 'ATA' || manufacturer.startsWith('0x')
    ? {}
    : { manufacturer };
}

/**
 * Undefined where nothing reports it. The rotation that a bridge or RAID controller reports counts.
 */
export function mediaTypeOf(transport: Transport, rotational: string): MediaType | undefined {
  switch (transport) {
    case 'mmc':
    case 'mmcBoot':
      return 'flashCard';
    case 'pmem':
      return 'persistentMemory';
    case 'optical':
      return 'optical';
    case 'virtio':
    case 'virtualMedia':
    case 'kernel':
      return 'virtual';
    case 'nvme':
    case 'nvmeFabrics':
      return 'ssd';
    case 'sata':
    case 'sas':
    case 'usb':
    case 'fibreChannel':
    case 'iscsi':
    case 'multipath':
    case 'unknown':
      return rotational === '1' ? 'hdd' : rotational === '0' ? 'ssd' : undefined;
  }
}

/**
 * The SCSI layer (ATA included) writes zeros by discarding only where the device declares that
 * discarded blocks read as zero: LBPRZ, which libata sets for DZAT drives that keep the promise.
 */
async function readDiscardZeroes(folder: string): Promise<Pick<DeviceFacts, 'discardZeroes'>> {
  const [disk = ''] = await namesIn(folder, 'device/scsi_disk');
  if (disk === '') return {};
  const mode = await readText(folder, 'device/scsi_disk', disk, 'zeroing_mode');
  return mode === '' ? {} : { discardZeroes: mode.endsWith('_unmap') };
}

/** `folder` is the place of the region in /sys. */
export async function readRegion(folder: string, name: string): Promise<Region> {
  const attachment = await readAttachment(folder);
  const discardGranularityBytes = await readNumber(folder, 'queue/discard_granularity');
  return {
    name,
    sizeBytes: (await readNumber(folder, 'size')) * sectorBytes,
    logicalBlockBytes: (await readNumber(folder, 'queue/logical_block_size')) || sectorBytes,
    ...(discardGranularityBytes === 0 ? {} : { discardGranularityBytes }),
    ...(attachment === undefined ? {} : { attachment }),
  };
}

/** Mounts from /proc/self/mountinfo (proc(5): third field) and swaps. */
export async function readInUse(roots: SysRoots): Promise<InUse> {
  const found = new Map<string, string>();
  for (const line of (await readText(roots.proc, 'self/mountinfo')).split('\n')) {
    const fields = line.split(' ');
    const [, , number = '', , mountPoint] = fields;
    if (mountPoint !== undefined && !found.has(number)) found.set(number, `mount ${mountPoint}`);
  }
  const swaps = (await readText(roots.proc, 'swaps')).split('\n').slice(1);
  for (const line of swaps) {
    const path = line.split(/\s/)[0] ?? '';
    const name = path.slice('/dev/'.length);
    const number = await readText(roots.sys, 'class/block', name, 'dev');
    if (number !== '') found.set(number, 'swap');
  }
  return found;
}

/** The depth to which devices on devices are followed: LVM on LUKS on md is three. */
const holderDepthMax = 8;

/** The device and its partitions: holders in /sys and theirs, mounts, swaps. */
export async function readHolders(folder: string, name: string, inUse: InUse): Promise<string[]> {
  const found = new Set<string>();
  await addHolders(found, folder, name, inUse, holderDepthMax);
  return [...found];
}

async function addHolders(
  found: Set<string>,
  folder: string,
  name: string,
  inUse: InUse,
  depth: number,
): Promise<void> {
  const parts = (await namesIn(folder)).filter((each) => each.startsWith(name));
  for (const path of [folder, ...parts.map((part) => join(folder, part))]) {
    for (const holder of await namesIn(path, 'holders')) {
      if (found.has(holder)) continue;
      found.add(holder);
      const above = await resolvePath(path, 'holders', holder);
      if (above !== '' && depth > 0) await addHolders(found, above, holder, inUse, depth - 1);
    }
    const use = inUse.get(await readText(path, 'dev'));
    if (use !== undefined) found.add(use);
  }
}

export async function readPartitions(folder: string, name: string): Promise<Partition[]> {
  const partitions: Partition[] = [];
  for (const part of (await namesIn(folder)).filter((each) => each.startsWith(name))) {
    if ((await readText(folder, part, 'partition')) === '') continue;
    partitions.push({
      region: name,
      offsetBytes: (await readNumber(folder, part, 'start')) * sectorBytes,
      sizeBytes: (await readNumber(folder, part, 'size')) * sectorBytes,
    });
  }
  return partitions;
}

function isMmcBoot(name: string): boolean {
  return /^mmcblk\d+boot\d+$/.test(name);
}

/**
 * The replay-protected block of an eMMC device: keyed counters and secrets of firmware, which only
 * its key holder may write; the kernel refuses ordinary reads and writes.
 */
export function isReplayProtected(name: string): boolean {
  return /^mmcblk\d+rpmb$/.test(name);
}

/** A card or an eMMC device by the drivers of cards (MMC, SD, Memory Stick). */
function isCard(name: string): boolean {
  return name.startsWith('mmcblk') || name.startsWith('mspblk');
}

function isOnUsb(path: string): boolean {
  return /\/usb\d+\//.test(path);
}

/** By the kernel name, the resolved place in /sys/devices, and the UUID from device mapper. */
export function transportOf(name: string, path: string, mapperUuid: string): Transport {
  if (mapperUuid.startsWith('mpath-')) return 'multipath';
  if (/^(loop|ram|zram|nbd|md|drbd|dm-)/.test(name)) return 'kernel';
  if (/^(sr|fd)/.test(name)) return path.includes('/usb') ? 'virtualMedia' : 'optical';
  if (isMmcBoot(name)) return 'mmcBoot';
  // A reader on USB may show its card by the drivers of cards: nobody says whose the card is.
  if (isCard(name) && isOnUsb(path)) return 'usb';
  if (isCard(name)) return 'mmc';
  if (isMemoryBlock(name)) return 'pmem';
  if (/\/rport-[\d:-]+\//.test(path)) return 'fibreChannel';
  if (/\/session\d+\//.test(path)) return 'iscsi';
  if (isOnUsb(path)) return 'usb';
  if (/\/ata\d+\//.test(path)) return 'sata';
  if (/\/end_device-[\d:]+\//.test(path)) return 'sas';
  if (/\/virtio\d+\//.test(path)) return 'virtio';
  // Hardware RAID: a SCSI host on PCI without a transport class of its own.
  if (/\/pci[\da-f:]+\/.*\/host\d+\/target/.test(path)) return 'sas';
  return 'unknown';
}

const raidVendors =
  /^(AVAGO|LSI|DELL|PERC|HP|HPE|Lenovo|Adaptec|ASR|MSCC|BROADCOM|Intel|Areca|3ware|Promise)/i;
/** MegaRAID, also under other product names, shows volumes from this channel on. */
const megaraidVolumeChannel = 2;

/**
 * A logical volume of a RAID controller: its driver says a RAID level (hpsa, smartpqi) or shows it
 * on a channel of volumes, or it carries the controller's name where a drive has its maker's.
 */
async function readRaidVolume(folder: string, path: string): Promise<boolean> {
  const level = await readText(folder, 'device/raid_level');
  if (level !== '') return level !== 'N/A';
  const [, above = '', host = '', channel = ''] =
    /^(.*\/(host\d+))\/target\d+:(\d+):/.exec(path) ?? [];
  if (above === '' || /\/(ata|end_device|usb|virtio)/.test(path)) return false;
  const driver = await readText(above, 'scsi_host', host, 'proc_name');
  if (driver.startsWith('megaraid')) return Number(channel) >= megaraidVolumeChannel;
  return raidVendors.test(await readText(folder, 'device/vendor'));
}

/**
 * virtio and NVMe report it in `serial`; SCSI and ATA in vital product page 0x80; else its bridge.
 */
async function readSerial(folder: string, name: string): Promise<string> {
  const path = await resolvePath(folder);
  if (isMemoryBlock(name)) return await readMemorySerial(path);
  const plain = (await readText(folder, 'serial')) || (await readText(folder, 'device/serial'));
  if (plain !== '') return plain;
  const page = await readBytes(folder, 'device/vpd_pg80');
  // SPC-4 §7.8.14: page code in byte 1, length in bytes 2 and 3, then the serial.
  if (page.length > 4 && page[1] === 0x80) {
    return new TextDecoder('latin1').decode(page.subarray(4));
  }
  const [, usbDevice = ''] = /^(.*\/usb\d+\/(?:[\d.-]+\/)+)[\d.-]+:[\d.]+\//.exec(path) ?? [];
  return usbDevice === '' ? '' : await readText(usbDevice, 'serial');
}

/** Only names that are unique world wide: not the "t10." names made of model and serial. */
export function worldWideName(wwid: string): string {
  return /^(naa|eui|uuid|nvme\.uuid)\./.test(wwid) ? cleanText(wwid) : '';
}

/** One line of printable ASCII, blanks folded. */
export function cleanText(text: string): string {
  const printable = text.replace(/[^\x20-\x7e]/g, ' ');
  return printable.replace(/ +/g, ' ').trim().slice(0, textBytesMax);
}
