/**
 * The input that a process is about to parse, in a file: when the process hangs or dies, its
 * starter reads there which input it was. One write of a few bytes costs some microseconds.
 */
import { ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';

const headerBytes = 8;

export class NotedInput {
  readonly #file: number;
  readonly #buffer: Buffer;
  #count = 0;

  constructor(path: string, inputBytesMax: number) {
    this.#file = openSync(path, 'w');
    this.#buffer = Buffer.alloc(headerBytes + inputBytesMax);
    ftruncateSync(this.#file, headerBytes);
  }

  /** Longer inputs than announced are cut. */
  write(input: Uint8Array): void {
    this.#count += 1;
    const bytes = input.subarray(0, this.#buffer.length - headerBytes);
    this.#buffer.writeUInt32LE(this.#count >>> 0, 0);
    this.#buffer.writeUInt32LE(bytes.length, 4);
    this.#buffer.set(bytes, headerBytes);
    writeSync(this.#file, this.#buffer, 0, headerBytes + bytes.length, 0);
  }
}

export interface Noted {
  /** Rises with each input; 0: none was noted yet. */
  readonly count: number;
  readonly input: Uint8Array;
}

/** While the other process writes, only the count can be relied upon. */
export function readNoted(path: string): Noted {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch {
    return { count: 0, input: new Uint8Array() };
  }
  if (bytes.length < headerBytes) return { count: 0, input: new Uint8Array() };
  const length = bytes.readUInt32LE(4);
  const input = Uint8Array.from(bytes.subarray(headerBytes, headerBytes + length));
  return { count: bytes.readUInt32LE(0), input };
}
