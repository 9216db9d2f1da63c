/**
 * Counts what a program makes durable, from inside of it and without a change to it: loaded with
 * `--import` before the program, it stands in front of every call of Node that ends in fsync(2) or
 * fdatasync(2), of every write to a file that is open for synchronous writes, and of every COMMIT
 * of SQLite. SQLite's own fsyncs are made in C and cannot be seen from here: a COMMIT that wrote is
 * one of the log, and checkpoints come on top.
 *
 * SIGUSR2 writes the counts so far to the file that RACKWRIGHT_BENCH_SYNCS names.
 */
import fs, { renameSync, writeFileSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { DatabaseSync } from 'node:sqlite';

const path = process.env['RACKWRIGHT_BENCH_SYNCS'] ?? '';
if (path === '') throw new Error('RACKWRIGHT_BENCH_SYNCS must name the file for the counts');
let syncs = 0;
let transactions = 0;

const handle = await open('/dev/null');
const fileHandle = Object.getPrototypeOf(handle) as FileHandle;
await handle.close();
const { sync, datasync } = fileHandle;
fileHandle.sync = function (this: FileHandle) {
  syncs += 1;
  return sync.call(this);
};
fileHandle.datasync = function (this: FileHandle) {
  syncs += 1;
  return datasync.call(this);
};
const synchronous = new WeakSet<FileHandle>();
const { open: openAny } = fs.promises;
fs.promises.open = async (path, flags, mode) => {
  const opened = await openAny(path, flags, mode);
  if (typeof flags === 'string' && flags.includes('s')) synchronous.add(opened);
  return opened;
};
const { writeFile } = fileHandle;
fileHandle.writeFile = function (this: FileHandle, ...of: Parameters<typeof writeFile>) {
  if (synchronous.has(this)) syncs += 1;
  return writeFile.apply(this, of);
};
const { fsyncSync, fdatasyncSync } = fs;
fs.fsyncSync = (descriptor) => {
  syncs += 1;
  fsyncSync(descriptor);
};
fs.fdatasyncSync = (descriptor) => {
  syncs += 1;
  fdatasyncSync(descriptor);
};
syncBuiltinESMExports();

const { exec } = DatabaseSync.prototype;
DatabaseSync.prototype.exec = function (this: DatabaseSync, sql: string) {
  if (sql === 'COMMIT') transactions += 1;
  exec.call(this, sql);
};

process.on('SIGUSR2', () => {
  writeFileSync(`${path}.tmp`, JSON.stringify({ syncs, transactions }));
  renameSync(`${path}.tmp`, path);
});
