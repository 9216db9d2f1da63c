/**
 * Files of the program's own state on the real disk.
 *
 * D1 After `writeAtomic` resolves, a reader sees the new contents even after a power cut; before,
 *    the old. Never a mixture. A crash leaves at most one `<path>.tmp`, replaced by the next write.
 * D2 `append` resolves only once its bytes are durable, in the order of the calls. The file is open
 *    for synchronous writes: a write needs no fdatasync after it.
 * D3 After a failed append the file takes no more: what the kernel kept of it is unknown, and a
 *    later fsync may claim success for pages that were dropped. Reopen and check the tail.
 * D4 `stat` finds a state after its call. Calls for one path until immediates next run share
 *    one call of the file system, which begins then.
 */
import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isAbsent } from '../absent.ts';
import type { AppendFile, Disk, FileStat } from '../disk.ts';
import { whenSettled } from '../rejections.ts';
import { type FileCalls, type FileCallsHandle, nodeFileCalls } from './file-calls.ts';
import { versionOf } from './file-version.ts';
import { shareCalls } from './shared-calls.ts';
import { syncFolder } from './sync-folder.ts';

const ownerOnlyMode = 0o600;
const permissionBits = 0o7777;

/** The disk of this machine, reached by `calls`. */
export function nodeDisk(calls: FileCalls = nodeFileCalls): Disk {
  const lastWrites = new Map<string, Promise<void>>();
  return {
    read: (path) => orMissing(readBytes(calls, path)),
    writeAtomic: (path, contents, mode) =>
      oneAfterTheOther(lastWrites, path, () => replace(calls, path, contents, mode)),
    openAppend: (path) => openAppend(calls, path),
    stat: shareCalls((path) => orMissing(statOf(path))),
    makeFolder: (path, mode) => makeFolder(calls, path, mode),
    remove: async (path) => {
      await calls.rm(path, { force: true });
      await orMissing(syncFolder(calls, dirname(path)));
    },
  };
}

/** Runs `write` after the writes of the same path before it, whether those failed or not. */
async function oneAfterTheOther(
  lastWrites: Map<string, Promise<void>>,
  path: string,
  write: () => Promise<void>,
): Promise<void> {
  const before = lastWrites.get(path) ?? Promise.resolve();
  const mine = whenSettled(before).then(write);
  lastWrites.set(path, mine);
  try {
    await mine;
  } finally {
    if (lastWrites.get(path) === mine) lastWrites.delete(path);
  }
}

async function replace(
  calls: FileCalls,
  path: string,
  contents: Uint8Array,
  mode: number,
): Promise<void> {
  const temporary = `${path}.tmp`;
  await calls.rm(temporary, { force: true });
  try {
    await writeNew(calls, temporary, contents, mode);
    await calls.rename(temporary, path);
  } catch (error) {
    await calls.rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(calls, dirname(path));
}

async function writeNew(
  calls: FileCalls,
  path: string,
  contents: Uint8Array,
  mode: number,
): Promise<void> {
  const file = await calls.open(path, 'wx', mode);
  try {
    // The mode given to open is narrowed by the umask.
    await file.chmod(mode);
    await file.writeFile(contents);
    await file.sync();
  } finally {
    await file.close();
  }
}

async function openAppend(calls: FileCalls, path: string): Promise<AppendFile> {
  const file = await calls.open(path, 'as', ownerOnlyMode);
  try {
    await syncFolder(calls, dirname(path));
  } catch (error) {
    await file.close();
    throw error;
  }
  return appendFile(path, file);
}

function appendFile(path: string, file: FileCallsHandle): AppendFile {
  let last: Promise<void> = Promise.resolve();
  let refusal: string | undefined;
  const write = async (bytes: Uint8Array): Promise<void> => {
    if (refusal !== undefined) throw new Error(refusal);
    try {
      await file.writeFile(bytes);
    } catch (error) {
      refusal = `${path}: an earlier append failed; reopen the file and check its end`;
      throw error;
    }
  };
  return {
    append: (bytes) => {
      last = whenSettled(last).then(() => write(bytes));
      return last;
    },
    close: async () => {
      await whenSettled(last);
      if (refusal === undefined) refusal = `${path}: closed`;
      await file.close();
    },
  };
}

/** Creates from the top, and makes each new entry durable in the folder that holds it. */
async function makeFolder(calls: FileCalls, path: string, mode: number): Promise<void> {
  const topmost = await mkdir(path, { recursive: true, mode });
  if (topmost === undefined) return;
  let folder = path;
  while (folder.length >= topmost.length && folder !== dirname(folder)) {
    folder = dirname(folder);
    await syncFolder(calls, folder);
  }
}

async function readBytes(calls: FileCalls, path: string): Promise<Uint8Array> {
  return new Uint8Array(await calls.readFile(path));
}

async function statOf(path: string): Promise<FileStat> {
  const found = await stat(path, { bigint: true });
  const isOurs = found.uid === 0n || found.uid === BigInt(process.geteuid?.() ?? -1);
  const version = versionOf(found);
  const mode = Number(found.mode) & permissionBits;
  return { sizeBytes: Number(found.size), mode, isOurs, version };
}

async function orMissing<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}
