/**
 * A simulated disk for programs' own files. Acknowledged durable data survives the death of the
 * process; a write under way may be there, partly there (torn) or missing.
 */
import type { AppendFile, Disk } from '@rackwright/platform';
import type { SimProcess } from './process.ts';

export interface DiskFaults {
  /** Milliseconds that one durable write takes. */
  latencyMs(): number;
  /** The number of bytes of a write cut by a crash that reached the disk. */
  tornBytes(length: number): number;
  /** True for a write that is acknowledged and never made: a disk that lies about its cache. */
  losesAcknowledged?(): boolean;
  /** Why this durable write fails (no space, I/O error); part of an append may be kept. */
  failure?(): string | undefined;
}

/** The platters: shared by the processes that come one after another. */
export class SimPlatters {
  readonly files = new Map<string, Uint8Array>();

  wipe(): void {
    this.files.clear();
  }

  /** What a copy taken now would hold. */
  copy(): Map<string, Uint8Array> {
    return new Map(this.files);
  }

  /** Puts back what a copy holds, and nothing else. */
  restore(copy: ReadonlyMap<string, Uint8Array>): void {
    this.files.clear();
    for (const [path, contents] of copy) this.files.set(path, contents);
  }
}

/** The disk as one process sees it. */
export function simDisk(platters: SimPlatters, process: SimProcess, faults: DiskFaults): Disk {
  const { files } = platters;
  /** One durable change, unless the disk refuses it. */
  const durably = (change: () => void) =>
    process.answer(faults.latencyMs(), () => {
      const failure = faults.failure?.();
      if (failure !== undefined) throw new Error(failure);
      change();
    });
  return {
    read: (path) => process.answer(0, () => files.get(path)?.slice()),
    writeAtomic: (path, contents) => {
      const copy = contents.slice();
      return durably(() => files.set(path, copy));
    },
    openAppend: (path) => {
      if (!files.has(path)) files.set(path, new Uint8Array());
      return Promise.resolve(appendFile(platters, path, process, faults));
    },
    stat: (path) => {
      const file = files.get(path);
      return Promise.resolve(
        file === undefined ? undefined : { sizeBytes: file.length, mode: 0o600, isOurs: true },
      );
    },
    makeFolder: () => Promise.resolve(),
    remove: (path) => durably(() => files.delete(path)),
  };
}

function appendFile(
  platters: SimPlatters,
  path: string,
  process: SimProcess,
  faults: DiskFaults,
): AppendFile {
  const grow = (bytes: Uint8Array) => {
    const before = platters.files.get(path) ?? new Uint8Array();
    const after = new Uint8Array(before.length + bytes.length);
    after.set(before);
    after.set(bytes, before.length);
    platters.files.set(path, after);
  };
  let pending: Uint8Array | undefined;
  process.whenKilled(() => {
    if (pending !== undefined) grow(pending.slice(0, faults.tornBytes(pending.length)));
  });
  return {
    append: (bytes) => {
      const copy = bytes.slice();
      if (faults.losesAcknowledged?.() === true) return Promise.resolve();
      pending = copy;
      return process.answer(faults.latencyMs(), () => {
        pending = undefined;
        const failure = faults.failure?.();
        if (failure === undefined) return grow(copy);
        // Nobody knows what a failed write has left behind.
        grow(copy.slice(0, faults.tornBytes(copy.length)));
        throw new Error(failure);
      });
    },
    close: () => Promise.resolve(),
  };
}
