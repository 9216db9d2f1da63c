/**
 * A disk in memory for tests: it outlives the program that uses it, tears the write under way when
 * the program dies, and fails on demand.
 */
import type { AppendFile, Disk } from '@rackwright/platform';

interface File {
  bytes: Uint8Array;
  mode: number;
}

export class MemoryDisk {
  readonly #files = new Map<string, File>();
  /** Every write fails while this is set: nothing is promised, part of it may be there. */
  failing = false;
  /** The share of a write that is on the disk after a failure or a crash, 0–1. */
  keptFraction = 0.5;
  /** The duration of a write: resolves when the write may take effect. */
  delay: () => Promise<void> = () => Promise.resolve();

  bytes(path: string): Uint8Array | undefined {
    return this.#files.get(path)?.bytes;
  }

  replace(path: string, bytes: Uint8Array): void {
    this.#files.set(path, { bytes, mode: 0o600 });
  }

  remove(path: string): void {
    this.#files.delete(path);
  }

  /** The disk as one life of the program sees it: `kill` ends that life. */
  open(): { readonly disk: Disk; kill(): void } {
    const life = { alive: true, pending: new Set<() => void>() };
    const disk: Disk = {
      read: (path) => this.#during(life, () => this.bytes(path)?.slice()),
      writeAtomic: (path, contents, mode) =>
        this.#during(life, () => {
          // A rename may have happened although the fsync after it failed.
          const happens = !this.failing || this.keptFraction >= 0.5;
          if (happens) this.#files.set(path, { bytes: contents.slice(), mode });
          if (this.failing) throw new Error('EIO: the disk is broken');
        }),
      openAppend: (path) => this.#during(life, () => this.#append(path, life)),
      stat: (path) =>
        this.#during(life, () => {
          const file = this.#files.get(path);
          return file && { sizeBytes: file.bytes.length, mode: file.mode, isOurs: true };
        }),
      makeFolder: () => this.#during(life, () => undefined),
      remove: (path) => this.#during(life, () => this.remove(path)),
    };
    const kill = () => {
      if (!life.alive) return;
      life.alive = false;
      for (const tear of life.pending) tear();
    };
    return { disk, kill };
  }

  #append(path: string, life: { alive: boolean; pending: Set<() => void> }): AppendFile {
    const file = this.#files.get(path) ?? { bytes: new Uint8Array(), mode: 0o600 };
    this.#files.set(path, file);
    let refused = false;
    const add = (bytes: Uint8Array) => {
      const grown = new Uint8Array(file.bytes.length + bytes.length);
      grown.set(file.bytes);
      grown.set(bytes, file.bytes.length);
      file.bytes = grown;
    };
    const append = async (bytes: Uint8Array) => {
      const tear = () => add(bytes.subarray(0, Math.floor(bytes.length * this.keptFraction)));
      life.pending.add(tear);
      await this.#during(life, () => {
        life.pending.delete(tear);
        if (this.failing) tear();
        if (this.failing) refused = true;
        if (refused) throw new Error('EIO: the disk is broken');
        add(bytes);
      });
    };
    return { append, close: () => this.#during(life, () => undefined) };
  }

  /** Acts after the delay; a program that has died gets no result. */
  async #during<T>(life: { readonly alive: boolean }, act: () => T): Promise<T> {
    if (!life.alive) return new Promise<never>(() => undefined);
    await this.delay();
    if (!life.alive) return new Promise<never>(() => undefined);
    return act();
  }
}
