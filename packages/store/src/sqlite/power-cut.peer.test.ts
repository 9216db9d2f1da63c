/**
 * S4 on a disk that forgets unsynced writes. SQLite calls the kernel itself, so strace records its
 *    calls, and they are repeated on files in memory. A power cut leaves synced data: the bytes of
 *    a file after `fsync` or `fdatasync` of it, its name after `fsync` of the folder.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openSqliteStore } from './store.ts';

/** Enough for the log to be taken into the database several times. */
const writes = 80;
const valueBytes = 64 * 1024;
/** The interval, in recorded calls, of the calls at which the power goes. */
const cutEvery = 37;

const writer = `
  const { writeSync } = await import('node:fs');
  const { openSqliteStore } = await import(${JSON.stringify(import.meta.resolve('./store.ts'))});
  const { nodeClock, nodeRandom } = await import('@rackwright/platform/node');
  const [path] = process.argv.slice(1);
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  for (let at = 0; at < ${writes}; at += 1) {
    const key = 'hosts.h' + at;
    const result = await store.put(key, new Uint8Array(${valueBytes}).fill(at), 'absent');
    if (result.kind !== 'ok') throw new Error(JSON.stringify(result));
    writeSync(1, 'acknowledged ' + key + '\\n');
  }
  await store.close();
`;

let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-power-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const traced = 'openat,pwrite64,write,ftruncate,fsync,fdatasync,unlink,rename';

/** The calls of a writer, in the order in which they ended; undefined: nothing can be traced. */
function record(): readonly Call[] | undefined {
  const [log, live] = [join(folder, 'calls'), join(folder, 'live')];
  mkdirSync(live);
  const strace = ['-f', '-y', '-xx', '-s', '10000000', '-e', `trace=${traced}`, '-o', log];
  const program = [process.execPath, '--input-type=module', '-e', writer, join(live, 'store.db')];
  try {
    execFileSync('strace', ['-o', '/dev/null', 'true'], { stdio: 'ignore' });
  } catch {
    return undefined;
  }
  execFileSync('strace', [...strace, ...program], { stdio: 'pipe' });
  return callsOf(readFileSync(log, 'latin1'));
}

interface Call {
  readonly name: string;
  /** File or folder that it is about, and the bytes of a write or the second name of a rename. */
  readonly paths: readonly string[];
  readonly bytes: Buffer;
  /** Its last argument: where a write goes, or how long a file is. */
  readonly last: number;
  readonly result: number;
}

function callsOf(log: string): Call[] {
  const begun = new Map<string, string>();
  return log.split('\n').flatMap((line) => {
    const [, thread = '', text = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    const [, start] = /^(.*) <unfinished \.\.\.>$/.exec(text) ?? [];
    if (start !== undefined) begun.set(thread, start);
    const [, end] = /^<\.\.\. \w+ resumed>(.*)$/.exec(text) ?? [];
    const whole = end === undefined ? text : `${begun.get(thread) ?? ''}${end}`;
    const [, name = '', given = '', result = '-1'] = /^(\w+)\((.*)\) += (-?\d+)/.exec(whole) ?? [];
    if (name === '' || result.startsWith('-')) return [];
    const quoted = [...given.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) => raw(hex));
    const [, opened] = /^\d+<([^>]*)>/.exec(given) ?? [];
    const [bytes = Buffer.alloc(0)] = quoted;
    const paths = opened === undefined ? quoted.map(String) : [String(raw(opened))];
    const last = Number(given.split(', ').at(-1));
    return [{ name, paths, bytes, last, result: Number(result) }];
  });
}

/** Bytes of strace's notation `\x2f`; a path may also be written literally. */
function raw(text: string): Buffer {
  return text.startsWith('\\x')
    ? Buffer.from(text.replaceAll('\\x', ''), 'hex')
    : Buffer.from(text);
}

interface Inode {
  bytes: Buffer;
  /** Begins with `bytes`, and zeros follow: a file that grows is not copied at each write. */
  room: Buffer;
  durable: Buffer;
}

const nothing = Buffer.alloc(0);

/** The files of one folder, as the recorded calls leave them. */
class Replayed {
  readonly #names = new Map<string, Inode>();
  #durableNames = new Map<string, Inode>();
  readonly #folder: string;

  constructor(ofFolder: string) {
    this.#folder = ofFolder;
  }

  apply({ name, paths: [path = '', to = ''], bytes, last, result }: Call): void {
    if (path === this.#folder && name === 'fsync') this.#durableNames = new Map(this.#names);
    if (!path.startsWith(`${this.#folder}/`)) return;
    const inode = this.#names.get(path) ?? { bytes: nothing, room: nothing, durable: nothing };
    if (name === 'openat') this.#names.set(path, inode);
    if (name === 'pwrite64') write(inode, bytes.subarray(0, result), last);
    if (name === 'write') write(inode, bytes.subarray(0, result), inode.bytes.length);
    if (name === 'ftruncate') truncate(inode, last);
    if (name === 'fsync' || name === 'fdatasync') inode.durable = Buffer.from(inode.bytes);
    if (name === 'unlink' || name === 'rename') this.#names.delete(path);
    if (name === 'rename') this.#names.set(to, inode);
  }

  /** What a power cut leaves, in a folder of its own. */
  cutPower(into: string): void {
    mkdirSync(into);
    for (const [path, { durable }] of this.#durableNames) {
      writeFileSync(join(into, basename(path)), durable, { mode: 0o600 });
    }
  }
}

function write(inode: Inode, bytes: Buffer, at: number): void {
  const end = Math.max(inode.bytes.length, at + bytes.length);
  if (end > inode.room.length) inode.room = Buffer.concat([inode.bytes], 2 * end);
  inode.bytes = inode.room.subarray(0, end);
  bytes.copy(inode.bytes, at);
}

function truncate(inode: Inode, length: number): void {
  inode.room = Buffer.concat([inode.bytes.subarray(0, length)], length);
  inode.bytes = inode.room;
}

/** Keys that a store holds which was left by a power cut, each with the value that was written. */
async function keysIn(path: string): Promise<string[]> {
  const store = await openSqliteStore({ path, random: nodeRandom(), clock: nodeClock() });
  const { entries } = await store.list('hosts');
  await store.close();
  for (const { key, value } of entries) {
    const at = Number(key.slice('hosts.h'.length));
    expect(Buffer.from(value).equals(Buffer.alloc(valueBytes, at)), key).toBe(true);
  }
  return entries.map(({ key }) => key);
}

test('after a power cut at any moment the store has each acknowledged write', async (context) => {
  const calls = record();
  if (calls === undefined)
    return context.skip('peer missing: strace: run npm run peers (or it may trace nothing here)');
  const replayed = new Replayed(join(folder, 'live'));
  const acknowledged: string[] = [];
  let cuts = 0;
  for (const [at, call] of calls.entries()) {
    replayed.apply(call);
    const [, key] = /^acknowledged (\S+)\n$/.exec(call.bytes.toString('latin1')) ?? [];
    if (call.name === 'write' && key !== undefined) acknowledged.push(key);
    const isJustSaid = key !== undefined && acknowledged.length % 8 === 1;
    if (acknowledged.length === 0 || (at % cutEvery !== 0 && !isJustSaid)) continue;
    cuts += 1;
    const left = join(folder, `left-${cuts}`);
    replayed.cutPower(left);
    const kept = new Set(await keysIn(join(left, 'store.db')));
    expect(
      acknowledged.filter((each) => !kept.has(each)),
      `call ${at}`,
    ).toEqual([]);
    rmSync(left, { recursive: true });
  }
  expect(acknowledged).toHaveLength(writes);
  expect(cuts).toBeGreaterThan(writes / 2);
});
