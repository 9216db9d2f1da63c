import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, type TestContext, test } from 'vitest';
import { inspectDisk, writePattern } from '../disk-image.ts';
import { fileStore } from './block-store.ts';
import { startIscsiTarget } from './iscsi-target.ts';
import { withLie } from './lies.ts';
import { scsiDisk } from './scsi-disk.ts';

const run = promisify(execFile);
const DISK_BYTES = 4 * 1024 * 1024;
const NAME = 'DISK';

function needsIscsi(context: TestContext): void {
  const { stdout } = spawnSync('qemu-img', ['--help'], { encoding: 'utf8' });
  if (!/\biscsi\b/.test(stdout ?? '')) {
    context.skip('peer missing: iscsi (qemu-block-extra): run npm run peers');
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return address.port;
}

/** Runs `use` with the URL of a target, behind the relay, whose medium protects itself. */
async function withTarget(
  use: (url: string, path: string) => Promise<void>,
  protectedAfter = Number.POSITIVE_INFINITY,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-iscsi-'));
  const [path, socket] = [join(folder, 'disk'), join(folder, 'sock')];
  writePattern(path, NAME, DISK_BYTES);
  const lie = { kind: 'protectsItselfAfter', bytes: protectedAfter } as const;
  const store = withLie(fileStore(path), lie, () => 0);
  const disk = scsiDisk(store, { serial: 'ISCSI' }, () => 0);
  const target = await startIscsiTarget({ path: socket, disk, powerOff: store.powerOff });
  const port = await freePort();
  const relay = spawn(process.execPath, [
    join(import.meta.dirname, 'relay/main.ts'),
    String(port),
    socket,
  ]);
  try {
    await once(relay.stdout, 'data');
    await use(`iscsi://127.0.0.1:${port}/iqn.2020-01.example.lab:disk/0`, path);
    expect(target.complaints).toEqual([]);
  } finally {
    relay.kill('SIGKILL');
    await target.close();
    store.close();
    rmSync(folder, { recursive: true });
  }
}

async function qemuIo(url: string, ...commands: readonly string[]): Promise<string> {
  const args = commands.flatMap((command) => ['-c', command]);
  return (await run('qemu-io', ['-f', 'raw', ...args, url], { encoding: 'utf8' })).stdout;
}

test('QEMU reads the capacity, writes in one burst and in several', async (context) => {
  needsIscsi(context);
  await withTarget(async (url, path) => {
    const shown = await run('qemu-img', ['info', '-f', 'raw', '--output', 'json', url]);
    expect(JSON.parse(shown.stdout)).toMatchObject({ 'virtual-size': DISK_BYTES });
    await qemuIo(url, 'write -P 0x55 0 4k', 'write -P 0 4k 4092k', 'flush', 'read -P 0 4k 4092k');
    await qemuIo(url, 'read -P 0x55 0 4k');
    expect(inspectDisk(path, NAME)).toMatchObject({ withPattern: 0, other: 1 });
  });
});

test('QEMU is told of a write protection', async (context) => {
  needsIscsi(context);
  await withTarget(async (url) => {
    await qemuIo(url, 'write -P 0 0 64k');
    const refused = { stdout: expect.stringMatching(/failed/) };
    await expect(qemuIo(url, 'write -P 0 64k 64k')).rejects.toMatchObject(refused);
  }, 64 * 1024);
});
