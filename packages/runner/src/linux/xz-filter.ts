/**
 * xz as a program of the ramdisk. Node cannot read xz, and the program reads it twice as quickly as
 * a library of JavaScript or WebAssembly would, beside our own thread, with a bound on its memory.
 */
import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import type { ByteFilter } from '@rackwright/disk-image';
import { ImageError } from '@rackwright/disk-image';
import { boundText } from '@rackwright/results';

/** More than the presets of xz need (65 MiB), less than a small host has. */
const memoryMebibytesMax = 256;
const textBytesMax = 512;

/** Decompresses by the program `xz`, which ends with its input, its reader, or the signal. */
export const unxz: ByteFilter = async function* (chunks, signal) {
  const args = ['--decompress', '--stdout', '--quiet', `--memlimit=${memoryMebibytesMax}MiB`];
  const child = spawn('xz', args, {
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  let message = '';
  child.stderr.on('data', (piece: Buffer) => {
    message = boundText(`${message}${piece.toString()}`, textBytesMax);
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once('error', (error) => resolve(error.message));
    child.once('close', (code, killedBy) => resolve(code ?? String(killedBy)));
  });
  const stop = (): void => void child.kill('SIGKILL');
  signal.addEventListener('abort', stop, { once: true });
  const feeding = feed(chunks, child.stdin).then(
    () => undefined,
    (error: unknown) => {
      stop();
      return { error };
    },
  );
  try {
    if (signal.aborted) stop();
    yield* child.stdout as AsyncIterable<Uint8Array>;
    const end = await ended;
    const fed = await feeding;
    if (fed !== undefined) throw fed.error;
    if (end !== 0) throw xzError(end, message.trim());
  } finally {
    stop();
    signal.removeEventListener('abort', stop);
    await ended;
  }
};

/** Also ends when the program reads no more; the exit of the program has the reason. */
async function feed(chunks: AsyncIterable<Uint8Array>, stdin: Writable): Promise<void> {
  let isOver = false;
  let wake = (): void => {};
  stdin.on('drain', () => wake());
  for (const event of ['error', 'close']) {
    stdin.on(event, () => {
      isOver = true;
      wake();
    });
  }
  for await (const chunk of chunks) {
    if (isOver) return;
    if (stdin.write(chunk)) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
      if (isOver) resolve();
    });
  }
  stdin.end();
}

function xzError(end: number | string, message: string): ImageError {
  const text = message === '' ? `xz ended with ${end}` : message;
  if (/unexpected end of input/i.test(message)) {
    return new ImageError('truncated', `the xz file ends too early: ${text}`);
  }
  const fault = /memory usage limit/i.test(message) ? 'unsupported' : 'malformed';
  return new ImageError(fault, `the xz file cannot be read: ${text}`);
}
