import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { inspectDisk, isUntouched, writePattern } from '../disk-image.ts';
import { fileStore } from './block-store.ts';
import { createByteQueue } from './byte-queue.ts';
import { type Lie, withLie } from './lies.ts';
import { type NbdServer, startNbdServer } from './nbd-server.ts';

const run = promisify(execFile);
const NAME = 'DISK';
const DISK_BYTES = 1024 * 1024;
let folder = '';
let path = '';
let socketPath = '';
let server: NbdServer | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-nbd-'));
  path = join(folder, 'disk');
  socketPath = join(folder, 'nbd.sock');
  writePattern(path, NAME, DISK_BYTES);
});

afterEach(async () => {
  await server?.close();
  server = undefined;
  rmSync(folder, { recursive: true });
});

async function serve(lie?: Lie): Promise<void> {
  const store = fileStore(path);
  server = await startNbdServer(
    socketPath,
    lie === undefined ? store : withLie(store, lie, () => performance.now()),
  );
}

function needsQemuIo(context: TestContext): void {
  if (spawnSync('qemu-io', ['--version']).status !== 0) {
    context.skip('peer missing: qemu-io (qemu-utils): run npm run peers');
  }
}

async function qemuIo(...commands: readonly string[]): Promise<string> {
  const args = commands.flatMap((command) => ['-c', command]);
  const target = `nbd+unix:///?socket=${socketPath}`;
  const options = { encoding: 'utf8' } as const;
  const { stdout } = await run('qemu-io', ['-f', 'raw', ...args, target], options);
  return stdout;
}

/** Bytes as the specification's tables show them, field by field. */
function fields(...words: readonly string[]): Buffer {
  return Buffer.from(words.join(''), 'hex');
}

/** A request of the transmission phase. */
function request(command: number, offset: number, length: number, cookie: bigint): Buffer {
  const header = Buffer.alloc(28);
  header.writeUInt32BE(0x25609513, 0);
  header.writeUInt16BE(command, 6);
  header.writeBigUInt64BE(cookie, 8);
  header.writeBigUInt64BE(BigInt(offset), 16);
  header.writeUInt32BE(length, 24);
  return header;
}

test('a client that is byte for byte the specification is served', async () => {
  await serve();
  const socket = connect(socketPath);
  const take = createByteQueue(socket);
  const need = async (length: number): Promise<Buffer> => {
    const bytes = await take(length);
    if (bytes === undefined) throw new Error('the server has hung up');
    return bytes;
  };
  expect((await need(18)).toString('latin1', 0, 16)).toBe('NBDMAGICIHAVEOPT');
  // Flags 3, then the option EXPORT_NAME with the name "x".
  socket.write(fields('00000003', '49484156454f5054', '00000001', '00000001', '78'));
  expect((await need(10)).readBigUInt64BE(0)).toBe(BigInt(DISK_BYTES));
  // Split where it hurts: a header in two pieces, two requests in one.
  const write = Buffer.concat([request(1, 4096, 4096, 7n), Buffer.alloc(4096, 0x22)]);
  socket.write(write.subarray(0, 5));
  socket.write(Buffer.concat([write.subarray(5), request(0, 4096, 512, 8n)]));
  expect(await need(16)).toEqual(fields('67446698', '00000000', '0000000000000007'));
  expect(await need(16)).toEqual(fields('67446698', '00000000', '0000000000000008'));
  expect((await need(512)).equals(Buffer.alloc(512, 0x22))).toBe(true);
  // Beyond its end: refused, with no data, and the connection lives.
  socket.write(Buffer.concat([request(0, DISK_BYTES, 512, 9n), request(3, 0, 0, 10n)]));
  expect(await need(16)).toEqual(fields('67446698', '00000005', '0000000000000009'));
  expect(await need(16)).toEqual(fields('67446698', '00000000', '000000000000000a'));
  socket.write(request(2, 0, 0, 11n));
  expect(await take(1)).toBeUndefined();
  expect(server?.complaints).toEqual([]);
});

test('a client that breaks the protocol is dropped, and the next one is served', async () => {
  await serve();
  const socket = connect(socketPath);
  const take = createByteQueue(socket);
  await take(18);
  socket.write(Buffer.alloc(64, 0x41));
  expect(await take(1)).toBeUndefined();
  expect(server?.complaints).toEqual(['Error: an option without its magic']);
  const next = connect(socketPath);
  expect((await createByteQueue(next)(18))?.length).toBe(18);
  next.destroy();
});

test('QEMU writes, zeroes, discards and reads back', async (context) => {
  needsQemuIo(context);
  await serve();
  await qemuIo('write -P 0x33 0 64k', 'read -P 0x33 0 64k', 'flush');
  expect(inspectDisk(path, NAME).withPattern).toBe((DISK_BYTES - 64 * 1024) / 4096);
  await qemuIo('write -z 64k 128k', 'discard 192k 832k', 'read -P 0 64k 960k');
  expect(inspectDisk(path, NAME)).toMatchObject({ withPattern: 0, allZero: 240 });
  expect(server?.complaints).toEqual([]);
});

test('the medium loses its power when QEMU goes', async (context) => {
  needsQemuIo(context);
  await serve({ kind: 'volatile' });
  const said = await qemuIo('write -P 0 0 1M', 'flush', 'read -P 0 0 1M');
  expect(said).not.toMatch(/fail/i);
  await expect.poll(() => server?.clients()).toBe(0);
  expect(isUntouched(path, NAME)).toBe(true);
});

test('QEMU is told of an error and of a write protection', async (context) => {
  needsQemuIo(context);
  await serve({ kind: 'protectsItselfAfter', bytes: 64 * 1024 });
  expect(await qemuIo('write -P 0 0 64k')).toMatch(/wrote 65536/);
  const refused = { stdout: expect.stringMatching(/Operation not permitted/) };
  await expect(qemuIo('write -P 0 64k 4k')).rejects.toMatchObject(refused);
});
