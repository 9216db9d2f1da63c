/**
 * Makes capacity of an ATA disk addressable that a host protected area or a device configuration
 * overlay hides, before its first write (ACS-2 §7.47, ATA8-ACS §7.10). Proven on fixtures only.
 *
 * Invariants:
 * H1 Commands go to an exclusive descriptor of the disk, after its serial and size were read there.
 * H2 hdparm's exit code proves nothing: the size is read again, from the disk and from the kernel.
 * H3 The disk is attached anew afterwards, since the kernel keeps the old size; the caller lists
 *    the devices again and finds the disk by its identity.
 */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { DeviceFacts } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { DeviceError } from '../machine/block-devices.ts';
import { type MaxSectors, parseMaxSectors, parseRealMaxSectors } from './capacity.ts';
import { openDirect } from './direct-region.ts';
import { readNames, readRegion } from './sys-block.ts';
import { resolvePath } from './sys-files.ts';
import type { SysRoots } from './sys-roots.ts';
import { inheritedPath, toolOutput } from './tool.ts';

const timeoutMs = 60_000;
/** hdparm refuses these commands without it. */
const sure = '--yes-i-know-what-i-am-doing';
const powerCycle = 'power the host off and on, and try again';

/** Runs hdparm on the open disk; returns its output. */
export type AskDisk = (args: readonly string[]) => Promise<string>;

/** Rejects with `DeviceError`; nothing was written to the disk's blocks in any case. */
export async function unhide(exec: Exec, roots: SysRoots, device: DeviceFacts): Promise<string[]> {
  const [region] = device.regions;
  if (region === undefined) throw new DeviceError(`${device.name} has no medium`);
  const open = await openDirect(join(roots.dev ?? '/dev', region.name), exec);
  let folder = '';
  const lines: string[] = [];
  try {
    folder = await resolvePath(roots.sys, 'dev/block', open.deviceNumber);
    const { serial, wwn } = await readNames(folder, region.name);
    const { sizeBytes } = await readRegion(folder, region.name);
    if (serial !== device.serial || wwn !== device.wwn || sizeBytes !== region.sizeBytes) {
      throw new DeviceError(`${region.name} is another device than was listed`, {
        loss: 'changed',
      });
    }
    const ask: AskDisk = (args) =>
      toolOutput(exec, 'hdparm', [...args, inheritedPath(0)], timeoutMs, [open.descriptor]);
    lines.push(...(await showAll(ask, region.name)));
  } finally {
    await open.close();
  }
  await attachAnew(roots, folder);
  return lines;
}

/** First the protected area: a disk that has one refuses to give up its overlay. */
export async function showAll(ask: AskDisk, name: string): Promise<string[]> {
  const lines: string[] = [];
  const before = await readMax(ask, name);
  if (before.addressable < before.native) {
    lines.push(await raise(ask, name, before.native));
  }
  const real = parseRealMaxSectors(await ask(['--dco-identify']));
  if (real === undefined || real <= before.native) return lines;
  await ask([sure, '--dco-restore']);
  const after = await readMax(ask, name);
  if (after.native < real) {
    throw new DeviceError(`${name}: its overlay still hides sectors: ${powerCycle}`);
  }
  lines.push(`${name}: device configuration overlay removed, ${after.native} sectors`);
  if (after.addressable < after.native) lines.push(await raise(ask, name, after.native));
  return lines;
}

/** SET MAX ADDRESS EXT, kept over power cycles ("p"); a disk obeys one of these per power-on. */
async function raise(ask: AskDisk, name: string, sectors: number): Promise<string> {
  await ask([sure, '-N', `p${sectors}`]);
  const { addressable } = await readMax(ask, name);
  if (addressable !== sectors) {
    throw new DeviceError(
      `${name}: ${addressable} of ${sectors} sectors can be addressed still: ${powerCycle}`,
    );
  }
  return `${name}: host protected area removed, ${sectors} sectors`;
}

async function readMax(ask: AskDisk, name: string): Promise<MaxSectors> {
  const max = parseMaxSectors(await ask(['-N']));
  if (max === undefined) throw new DeviceError(`${name} does not say its native size`);
  return max;
}

/** Off the SCSI bus and found again. `folder`: of the block device. */
async function attachAnew(roots: SysRoots, folder: string): Promise<void> {
  const [, host = ''] = /\/(host\d+)\//.exec(folder) ?? [];
  if (host === '') throw new DeviceError(`${folder} is on no SCSI host`);
  await writeFile(join(folder, 'device/delete'), '1');
  await writeFile(join(roots.sys, 'class/scsi_host', host, 'scan'), '- - -');
}
