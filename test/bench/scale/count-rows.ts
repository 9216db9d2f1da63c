/**
 * Counts what a program reads of SQLite, from inside of it and without a change to it: loaded with
 * `--import` before the program. A row counts with the bytes of its values.
 *
 * SIGUSR2 writes the counts so far to the file that RACKWRIGHT_BENCH_ROWS names.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { StatementSync } from 'node:sqlite';

const path = process.env['RACKWRIGHT_BENCH_ROWS'] ?? '';
if (path === '') throw new Error('RACKWRIGHT_BENCH_ROWS must name the file for the counts');
let rows = 0;
let bytes = 0;

function count(row: Record<string, unknown> | undefined): void {
  if (row === undefined) return;
  rows += 1;
  const { value } = row;
  if (value instanceof Uint8Array) bytes += value.byteLength;
}

const { all, get } = StatementSync.prototype;
StatementSync.prototype.all = function (this: StatementSync, ...given: unknown[]) {
  const found = Reflect.apply(all, this, given) as ReturnType<typeof all>;
  for (const row of found) count(row);
  return found;
};
StatementSync.prototype.get = function (this: StatementSync, ...given: unknown[]) {
  const found = Reflect.apply(get, this, given) as ReturnType<typeof get>;
  count(found);
  return found;
};

process.on('SIGUSR2', () => {
  writeFileSync(`${path}.tmp`, JSON.stringify({ rows, bytes }));
  renameSync(`${path}.tmp`, path);
});
