/**
 * One run of the writer in a process of its own, so that its memory can be told:
 *
 *   node write.ts disk FILE SHA256 DISK    a file onto a disk, which is a file
 *   node write.ts sink GIBIBYTES           made-up frames of zstd into a disk that only remembers
 *                                          what they were
 *
 * Answers JSON: seconds of the writing and of the reading back, bytes, and the peak of memory.
 */
import { createHash } from 'node:crypto';
import { createReadStream, statSync } from 'node:fs';
import { zstdCompressSync } from 'node:zlib';
import { nodeExec } from '@rackwright/platform/node';
import { type ImageDisk, openDirect, provisionDisk, unxz } from '@rackwright/runner';

type ByteSource = Parameters<typeof provisionDisk>[1];

const mebibyte = 1024 * 1024;
/** Of one made-up frame; it comes again and again. */
const frameBytes = 8 * mebibyte;

const [kind = '', first = '', digest = '', diskPath = ''] = process.argv.slice(2);
const result = kind === 'sink' ? await intoSink(Number(first)) : await ontoDisk();
console.log(JSON.stringify({ ...result, peakKib: process.resourceUsage().maxRSS }));

async function ontoDisk() {
  const open = await openDirect(diskPath, nodeExec(undefined, 'ours'));
  const source: ByteSource = {
    open: async (from) => {
      const stream = createReadStream(first, { start: from, highWaterMark: 256 * 1024 });
      return { start: from, chunks: stream, close: () => void stream.destroy() };
    },
  };
  const sizeBytes = statSync(diskPath).size;
  return await measure(source, { open, sizeBytes, blockBytes: 512, isZero: false }, digest);
}

async function intoSink(gibibytes: number) {
  const content = frameContent();
  const frame = zstdCompressSync(content);
  const frames = (gibibytes * 1024 * mebibyte) / frameBytes;
  const hash = createHash('sha256');
  for (let count = 0; count < frames; count += 1) hash.update(frame);
  const source: ByteSource = {
    open: async () => ({
      start: 0,
      chunks: (async function* () {
        for (let count = 0; count < frames; count += 1) {
          for (let at = 0; at < frame.length; at += 65_536) yield frame.subarray(at, at + 65_536);
        }
      })(),
      close: () => {},
    }),
  };
  return await measure(source, sink(content, frames * frameBytes), hash.digest('hex'));
}

/** Half noise, half text, as the files of a system are. */
function frameContent(): Buffer {
  const content = Buffer.alloc(frameBytes, 'The quick brown fox jumps over the lazy dog. ');
  let state = createHash('sha256').update('noise').digest();
  for (let at = 0; at < frameBytes / 2; at += state.length) {
    state = createHash('sha256').update(state).digest();
    state.copy(content, at);
  }
  return content;
}

/** Reads back what the frames were, whatever was written; both ends as they were wiped. */
function sink(content: Buffer, sizeBytes: number): ImageDisk {
  let head: Uint8Array = new Uint8Array(mebibyte);
  let isWritten = false;
  const end = sizeBytes + mebibyte;
  return {
    sizeBytes: end,
    blockBytes: 512,
    isZero: false,
    open: {
      read: async (offset, length) => {
        if (offset === 0) return head.subarray(0, length);
        if (offset >= sizeBytes || !isWritten) return new Uint8Array(length);
        return content.subarray(offset % frameBytes, (offset % frameBytes) + length);
      },
      write: async (offset, bytes) => {
        isWritten = true;
        if (offset === 0) head = new Uint8Array(bytes);
      },
      writeZeros: async () => {},
      discard: async () => [],
      flush: async () => {},
      close: async () => {},
    },
  };
}

async function measure(source: ByteSource, disk: ImageDisk, sha256: string) {
  const times = { written: 0, readBack: 0 };
  const tell = (_: number, what: string): void => {
    if (what === 'writing') times.written = performance.now();
    else times.readBack = performance.now();
  };
  const startedMs = performance.now();
  const plan = { image: { sha256 }, grow: false };
  const end = await provisionDisk(plan, source, disk, tell, new AbortController().signal, {
    unxz,
    mayBegin: async () => ({ kind: 'granted' }),
  });
  await disk.open.close();
  if (end.kind === 'failed') throw new Error(`${end.fault}: ${end.message}`);
  return {
    bytes: end.installed.sizeBytes,
    writeSeconds: (times.written - startedMs) / 1_000,
    readSeconds: (times.readBack - times.written) / 1_000,
  };
}
