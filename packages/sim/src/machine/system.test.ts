/** What firmware finds on disks, and what a system does that was started from one. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { fitTable, makeSeed, noCloudSeed, seedPartitionBytes } from '@rackwright/disk-image';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type DiskPlan, holdsImage, makeDisk } from './disks.ts';
import { runningSystem, startFromDisk } from './first-boot.ts';
import { findSystem, systemImage } from './system.ts';

const mib = 1024 * 1024;
const image = systemImage({ name: 'web', version: '1.0' }, 4 * mib);
const diskPlan: DiskPlan = { name: 'b', serial: 'B', kind: 'discard', sizeBytes: 16 * mib };
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-system-'));
  mkdirSync(join(folder, 'run'));
  makeDisk(folder, { name: 'a', serial: 'A', kind: 'overwrite' });
  makeDisk(folder, diskPlan);
});

afterEach(() => rmSync(folder, { recursive: true }));

/** Writes a disk as the runner writes it: the image, its table made to fit, first-boot data. */
function install(content: Buffer, phoneHomeUrl?: string): Buffer {
  const disk = Buffer.alloc(diskPlan.sizeBytes ?? 0);
  content.copy(disk);
  const head = disk.subarray(0, mib);
  const room = { sizeBytes: seedPartitionBytes, name: 'cidata' };
  const asked = { head, diskBytes: disk.length, blockBytes: 512, grow: true, seed: room };
  const fitted = fitTable(asked);
  disk.set(fitted.head);
  const seed = noCloudSeed({
    ...{ instanceId: 'deployment-1', hostName: 'h1', phoneHomeUrl },
    ...{ metaData: {}, userData: '#cloud-config\n', networkConfig: '' },
  });
  disk.set(makeSeed(seed, 512), fitted.seed?.offsetBytes ?? disk.length);
  writeFileSync(join(folder, 'disks', 'b.img'), disk);
  return disk;
}

test('no system starts from disks with other contents or a partly written image', () => {
  expect(findSystem(join(folder, 'disks'))).toEqual({ kind: 'none' });
  const disk = install(image);
  disk.fill(0, 0, mib);
  writeFileSync(join(folder, 'disks', 'b.img'), disk);
  expect(findSystem(join(folder, 'disks'))).toEqual({ kind: 'none' });
});

test('the machine finds its system and the first-boot data at the first start', () => {
  install(image, 'http://127.0.0.1:1/phone-home/x/y');
  expect(findSystem(join(folder, 'disks'))).toMatchObject({
    ...{ kind: 'system', disk: 'b', system: { name: 'web', version: '1.0' } },
    firstBoot: {
      ...{ hostName: 'h1', instanceId: 'deployment-1' },
      phoneHome: { url: 'http://127.0.0.1:1/phone-home/x/y' },
    },
  });
  expect(holdsImage(folder, diskPlan, image)).toBe(true);
  const other = systemImage({ name: 'web', version: '1.1' }, image.length);
  expect(holdsImage(folder, diskPlan, other)).toBe(false);
});

test('the machine does not start a system of which a byte is another', async () => {
  const broken = Buffer.from(image);
  const at = 2 * mib;
  broken.writeUInt8(broken.readUInt8(at) ^ 1, at);
  install(broken, 'http://127.0.0.1:1/');
  const said: string[] = [];
  await startFromDisk(folder, (text) => void said.push(text));
  expect(said).toEqual(['the disk b does not start: its system is not whole']);
  expect(runningSystem(folder)).toBeUndefined();
});

test('runs, and calls whom its first-boot data names', async () => {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    void buffer(request).then((body) => {
      calls.push(`${request.method} ${request.url} ${body.toString()}`);
      response.end('ok\n');
    });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    install(image, `http://127.0.0.1:${port}/phone-home/x/y`);
    const said: string[] = [];
    await startFromDisk(folder, (text) => void said.push(text));
    expect(said).toEqual(['h1 runs web 1.0 from b', 'has phoned home']);
    const form = 'instance_id=deployment-1&hostname=h1&fqdn=h1';
    expect(calls).toEqual([`POST /phone-home/x/y ${form}`]);
    expect(runningSystem(folder)).toEqual({ name: 'web', version: '1.0' });
  } finally {
    server.close();
  }
});
