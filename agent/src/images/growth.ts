/**
 * A blob that is being fetched, for whoever reads it meanwhile.
 *
 * V1 The last byte is handed on only when the digest of the whole was found right: who got all has
 *    got the blob. Who reads only a place in it has no such promise.
 * V2 When what has come turns out to be another blob, or the fetch is given up, readers learn it:
 *    their reading throws.
 */
import { OciError } from '@rackwright/oci';
import type { LargeFiles, ReadFile } from '@rackwright/platform';

type GrowthState = 'growing' | 'whole' | 'failed';

/** How far a fetch is. Written by the fetch alone. */
export class Growth {
  readonly sizeBytes: number;
  /** Rises when all is begun anew. */
  life = 1;
  #bytes = 0;
  #state: GrowthState = 'growing';
  #changed = Promise.withResolvers<void>();

  constructor(sizeBytes: number) {
    this.sizeBytes = sizeBytes;
  }

  /** How many bytes are in the file. */
  get bytes(): number {
    return this.#bytes;
  }

  get state(): GrowthState {
    return this.#state;
  }

  /** How many bytes may be handed on (V1). */
  get readableBytes(): number {
    return this.#state === 'whole' ? this.sizeBytes : Math.min(this.#bytes, this.sizeBytes - 1);
  }

  grow(bytes: number): void {
    this.#bytes = bytes;
    this.#tell();
  }

  /** What has come was of no use (V2). */
  beginAnew(): void {
    this.life += 1;
    this.grow(0);
  }

  end(state: 'whole' | 'failed'): void {
    this.#state = state;
    this.#tell();
  }

  /** Resolves with the next change, or when `signal` is aborted. */
  async change(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return;
    const aborted = Promise.withResolvers<void>();
    const stop = (): void => aborted.resolve();
    signal.addEventListener('abort', stop, { once: true });
    await Promise.race([this.#changed.promise, aborted.promise]);
    signal.removeEventListener('abort', stop);
  }

  #tell(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers<void>();
  }
}

const readBytesAtOnce = 256 * 1024;

/** Where a growing blob lies: under its first name, and in the end under its last. */
export interface GrowingPlace {
  readonly files: Pick<LargeFiles, 'openRead'>;
  readonly partPath: string;
  readonly finalPath: string;
}

/** The bytes from `start` to `end`, both inclusive, as they come. Throws `OciError` (V2). */
export async function* readGrowing(
  { files, partPath, finalPath }: GrowingPlace,
  growth: Growth,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const { life } = growth;
  let file: ReadFile | undefined;
  let at = start;
  try {
    while (at <= end && !signal.aborted) {
      check(growth, life);
      const bytes = Math.min(growth.readableBytes, end + 1) - at;
      if (bytes <= 0) {
        await growth.change(signal);
        continue;
      }
      file ??= await openEither(files, partPath, finalPath);
      const piece = await file.read(at, Math.min(bytes, readBytesAtOnce));
      // It may have been emptied while it was read.
      check(growth, life);
      if (piece.length === 0) throw new OciError('unreachable', 'the image cache has lost a blob');
      at += piece.length;
      yield piece;
    }
  } finally {
    await file?.close();
  }
}

function check(growth: Growth, life: number): void {
  if (growth.state === 'failed') throw new OciError('unreachable', 'its fetch was given up');
  if (growth.life !== life) {
    throw new OciError('digestMismatch', 'what had come of the blob was another one');
  }
}

async function openEither(
  files: GrowingPlace['files'],
  first: string,
  last: string,
): Promise<ReadFile> {
  try {
    return await files.openRead(first);
  } catch {
    return files.openRead(last);
  }
}
