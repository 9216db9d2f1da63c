/**
 * Whether a device keeps writes in a volatile cache, and whether that can be switched off. Reads
 * only.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Transport, WriteCache } from '@rackwright/erasure';
import type { Exec } from '@rackwright/platform';
import { isMissing, namesIn, readText } from './sys-files.ts';
import { toolOutput } from './tool.ts';

const askTimeoutMs = 20_000;
/** Any bit: the file can be written. */
const writeBits = 0o222;

/** `WCE           1  [cha: y, def:  1]`, as sdparm prints the caching mode page (SBC-4 §6.4.5). */
export function parseCachingPage(text: string): WriteCache | undefined {
  const match = /^[ \t]*WCE\s+(\d+)\s*(?:\[cha:\s*([yn]))?/m.exec(text);
  if (match === null) return undefined;
  const [, enabled = '', changeable = 'n'] = match;
  if (enabled === '0') return 'off';
  return changeable === 'y' ? 'on' : 'fixedOn';
}

/**
 * Undefined when nothing reports it. `folder`: in /sys/block. A device that the kernel flushes has
 * a cache ("write back"); whether it can be switched off is read in a way of each kind of device.
 */
export async function readWriteCache(
  exec: Exec,
  folder: string,
  path: string,
  transport: Transport,
): Promise<WriteCache | undefined> {
  const kernel = await readText(folder, 'queue/write_cache');
  const [scsi = ''] = await namesIn(folder, 'device/scsi_disk');
  if (scsi !== '') {
    const page = parseCachingPage(
      await toolOutput(exec, 'sdparm', ['--get=WCE', path], askTimeoutMs),
    );
    if (page !== undefined) return page;
    return fromKernel(await readText(folder, 'device/scsi_disk', scsi, 'cache_type'));
  }
  if (transport === 'virtio' && kernel === 'write back') {
    return (await isWritable(join(folder, 'cache_type'))) ? 'on' : 'fixedOn';
  }
  return fromKernel(kernel);
}

function fromKernel(type: string): WriteCache | undefined {
  if (type.startsWith('write back')) return 'fixedOn';
  return type.startsWith('write through') || type === 'none' ? 'none' : undefined;
}

async function isWritable(path: string): Promise<boolean> {
  try {
    return ((await stat(path)).mode & writeBits) !== 0;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}
