/**
 * Direct, exclusive access to one block device or file.
 *
 * Invariants:
 * 1. Reads and writes bypass the kernel's cache (O_DIRECT), so a read is the device's answer.
 * 2. On a block device O_EXCL makes `open` fail while anybody has mounted or claimed it.
 */
import { constants } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import type { Exec } from '@rackwright/platform';
import { DeviceError, type OpenRegion, transferBytesMax } from '../block-devices.ts';
import { isTransferMemory, transferMemory } from '../transfer-memory.ts';
import { runTool } from './tool.ts';

/** Discarding a large device may take long; beyond this it is given up. */
const discardTimeoutMs = 3_600_000;

/** Opens `path` for direct access. Rejects with `DeviceError`. */
export async function openDirect(path: string, exec: Exec): Promise<OpenRegion> {
  const exclusive = constants.O_DIRECT | constants.O_EXCL;
  const file = await attempt(path, 'open', () => open(path, constants.O_RDWR | exclusive));
  return directRegion(path, file, exec);
}

function directRegion(path: string, file: FileHandle, exec: Exec): OpenRegion {
  const [buffer = new Uint8Array()] = transferMemory(1);
  const writeFrom = async (bytes: Uint8Array, length: number, offset: number): Promise<void> => {
    const what = `write of ${length} bytes at ${offset}`;
    const { bytesWritten } = await attempt(path, what, () => file.write(bytes, 0, length, offset));
    if (bytesWritten !== length) {
      throw new DeviceError(`${path}: ${what}: only ${bytesWritten} bytes were taken`);
    }
  };
  return {
    read: async (offset, length) => {
      checkLength(path, length);
      const what = `read of ${length} bytes at ${offset}`;
      const { bytesRead } = await attempt(path, what, () => file.read(buffer, 0, length, offset));
      if (bytesRead !== length) {
        throw new DeviceError(`${path}: ${what}: only ${bytesRead} bytes came`);
      }
      return buffer.subarray(0, length);
    },
    write: async (offset, bytes) => {
      checkLength(path, bytes.length);
      const isThere = isTransferMemory(bytes);
      if (!isThere) buffer.set(bytes);
      await writeFrom(isThere ? bytes : buffer, bytes.length, offset);
    },
    writeZeros: async (offset, length) => {
      checkLength(path, length);
      buffer.fill(0, 0, length);
      await writeFrom(buffer, length, offset);
    },
    discard: (offset, length) => blkdiscard(exec, path, [], offset, length),
    zeroOut: (offset, length) => blkdiscard(exec, path, ['--zeroout'], offset, length),
    flush: async () => {
      await attempt(path, 'flush', () => file.sync());
    },
    close: () => file.close(),
  };
}

/** Forced, for it is we who hold the device exclusively. */
function blkdiscard(
  exec: Exec,
  path: string,
  how: readonly string[],
  offset: number,
  length: number,
): Promise<string[]> {
  const range = ['--offset', String(offset), '--length', String(length)];
  return runTool(exec, 'blkdiscard', ['--force', ...how, ...range, path], discardTimeoutMs);
}

function checkLength(path: string, length: number): void {
  if (length <= transferBytesMax) return;
  throw new DeviceError(`${path}: ${length} bytes at once, at most ${transferBytesMax}`);
}

async function attempt<T>(path: string, what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (cause) {
    const words = cause instanceof Error ? cause.message : String(cause);
    throw new DeviceError(`${path}: ${what}: ${words}`, { cause });
  }
}
