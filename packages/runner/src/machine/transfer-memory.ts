/**
 * Memory for writes to a disk past the page cache.
 *
 * O_DIRECT wants memory aligned to the blocks of the disk: a WebAssembly.Memory is, a Buffer is not
 * (EINVAL). It is shared, so that another thread can hash it while it is being written.
 */
import { transferBytesMax } from './block-devices.ts';

/** A page of WebAssembly memory, bytes. */
const pageBytes = 64 * 1024;
/** No disk has larger logical blocks. */
const alignmentBytes = 4096;

const made = new WeakSet<ArrayBufferLike>();

/** Room for so many transfers of `bytesEach`, a multiple of 64 KiB; all zeros. */
export function transferMemory(
  count: number,
  bytesEach: number = transferBytesMax,
): readonly Uint8Array[] {
  // The types of Node declare no WebAssembly that could be constructed.
  const { Memory } = Reflect.get(globalThis, 'WebAssembly');
  const pages = (count * bytesEach) / pageBytes;
  const memory: { readonly buffer: SharedArrayBuffer } = new Memory({
    ...{ initial: pages, maximum: pages, shared: true },
  });
  made.add(memory.buffer);
  return Array.from(
    { length: count },
    (_, index) => new Uint8Array(memory.buffer, index * bytesEach, bytesEach),
  );
}

/** Whether a disk can be written directly from these bytes. */
export function isTransferMemory({ buffer, byteOffset }: Uint8Array): boolean {
  return byteOffset % alignmentBytes === 0 && made.has(buffer);
}
