/**
 * Direct, exclusive access to one block device or file.
 *
 * Invariants:
 * 1. Reads and writes bypass the kernel's cache (O_DIRECT), so a read is the device's answer.
 * 2. On a block device O_EXCL makes `open` fail while it is mounted or claimed.
 * 3. The path is resolved once, by `openDirect`. Tools get the descriptor (`/dev/fd/3`). The kernel
 *    opens that by device number, and gives the number of an open device to no other device.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { type Exec, errorText } from '@rackwright/platform';
import {
  type DeviceAccess,
  DeviceError,
  type DeviceOperation,
  type OpenRegion,
  streamBytesMax,
  transferBytesMax,
} from '../machine/block-devices.ts';
import { isTransferMemory, transferMemory } from '../machine/transfer-memory.ts';
import { inheritedPath, runTool, workMsMax } from './tool.ts';

/** One open device or file. */
export interface DirectRegion extends OpenRegion {
  /** A descriptor of this process; open until `close`. */
  readonly descriptor: number;
  /** Device number as the kernel writes it ("8:0"); empty for a plain file. */
  readonly deviceNumber: string;
  close(): Promise<void>;
}

/** Opens `path` for direct access. Rejects with `DeviceError`. */
export async function openDirect(
  path: string,
  exec: Exec,
  access: DeviceAccess = 'write',
): Promise<DirectRegion> {
  const mode = access === 'write' ? constants.O_RDWR : constants.O_RDONLY;
  const flags = mode | constants.O_DIRECT | constants.O_EXCL;
  const file = await attempt(path, 'open', undefined, () => open(path, flags));
  try {
    const status = await attempt(path, 'stat', undefined, () => file.stat());
    const deviceNumber = status.isBlockDevice() ? deviceNumberOf(status.rdev) : '';
    return directRegion(path, file, deviceNumber, exec);
  } catch (error) {
    await file.close();
    throw error;
  }
}

/** glibc's gnu_dev_major and gnu_dev_minor. */
function deviceNumberOf(rdev: number): string {
  const bits = BigInt(rdev);
  const major = ((bits >> 8n) & 0xfffn) | ((bits >> 32n) & 0xffff_f000n);
  const minor = (bits & 0xffn) | ((bits >> 12n) & 0xffff_ff00n);
  return `${major}:${minor}`;
}

/** All zeros, for every region, and never written. */
const [zeros = new Uint8Array()] = transferMemory(1, streamBytesMax);

async function writeWhole(
  path: string,
  file: FileHandle,
  bytes: Uint8Array,
  length: number,
  offset: number,
): Promise<void> {
  const action = `write of ${length} bytes at ${offset}`;
  const { bytesWritten } = await attempt(path, action, 'write', () =>
    file.write(bytes, 0, length, offset),
  );
  if (bytesWritten === length) return;
  throw new DeviceError(`${path}: ${action}: only ${bytesWritten} bytes were taken`, {
    operation: 'write',
  });
}

async function readWhole(
  path: string,
  file: FileHandle,
  target: Uint8Array,
  length: number,
  offset: number,
): Promise<void> {
  const action = `read of ${length} bytes at ${offset}`;
  const { bytesRead } = await attempt(path, action, 'read', () =>
    file.read(target, 0, length, offset),
  );
  if (bytesRead === length) return;
  throw new DeviceError(`${path}: ${action}: only ${bytesRead} bytes came`, { operation: 'read' });
}

function directRegion(
  path: string,
  file: FileHandle,
  deviceNumber: string,
  exec: Exec,
): DirectRegion {
  let own: Uint8Array | undefined;
  /** Made when it is needed: many held devices wait, and few are read. */
  const ownMemory = (): Uint8Array => (own ??= transferMemory(1)[0] ?? new Uint8Array());
  const writeFrom = (bytes: Uint8Array, length: number, offset: number) =>
    writeWhole(path, file, bytes, length, offset);
  const discard = (how: readonly string[], offset: number, length: number): Promise<string[]> =>
    blkdiscard(exec, file.fd, how, offset, length);
  return {
    descriptor: file.fd,
    deviceNumber,
    read: async (offset, length) => {
      checkLength(path, length, transferBytesMax);
      await readWhole(path, file, ownMemory(), length, offset);
      return ownMemory().subarray(0, length);
    },
    readInto: async (offset, target) => {
      checkLength(path, target.length, streamBytesMax);
      await readWhole(path, file, target, target.length, offset);
    },
    write: async (offset, bytes) => {
      checkLength(path, bytes.length, transferBytesMax);
      const isThere = isTransferMemory(bytes);
      if (!isThere) ownMemory().set(bytes);
      await writeFrom(isThere ? bytes : ownMemory(), bytes.length, offset);
    },
    writeZeros: async (offset, length) => {
      checkLength(path, length, streamBytesMax);
      await writeFrom(zeros, length, offset);
    },
    discard: (offset, length) => discard([], offset, length),
    zeroOut: (offset, length) => discard(['--zeroout'], offset, length),
    flush: async () => {
      await attempt(path, 'flush', 'flush', () => file.sync());
    },
    close: () => file.close(),
  };
}

/** Forced, because this process holds the device exclusively. */
function blkdiscard(
  exec: Exec,
  descriptor: number,
  how: readonly string[],
  offset: number,
  length: number,
): Promise<string[]> {
  const range = ['--offset', String(offset), '--length', String(length)];
  const args = ['--force', ...how, ...range, inheritedPath(0)];
  return runTool(exec, 'blkdiscard', args, workMsMax(length), [descriptor]);
}

function checkLength(path: string, length: number, most: number): void {
  if (length <= most) return;
  throw new DeviceError(`${path}: ${length} bytes at once, at most ${most}`);
}

/** The kernel's errors for a device that is gone (open(2), and a disk that was removed). */
const goneCodes: readonly unknown[] = ['ENXIO', 'ENODEV', 'ENOENT', 'ENOMEDIUM'];

async function attempt<T>(
  path: string,
  action: string,
  operation: DeviceOperation | undefined,
  act: () => Promise<T>,
): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    const text = errorText(cause);
    const isGone = cause instanceof Error && 'code' in cause && goneCodes.includes(cause.code);
    throw new DeviceError(`${path}: ${action}: ${text}`, {
      cause,
      ...(isGone ? { loss: 'vanished' } : {}),
      ...(operation === undefined ? {} : { operation }),
    });
  }
}
