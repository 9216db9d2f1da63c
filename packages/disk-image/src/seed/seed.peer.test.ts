/** The file system of first-boot data, as Debian's tools see it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { makeFat } from './fat.ts';
import { makeSeed, type Seed, seedFilesBytesMax } from './seed.ts';

let folder = '';
let missing: string | undefined;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-seed-'));
  for (const program of ['fsck.vfat', 'mdir', 'blkid']) {
    try {
      execFileSync('which', [program], { stdio: 'pipe' });
    } catch {
      missing = `no ${program}`;
    }
  }
});

afterEach(() => rmSync(folder, { recursive: true }));

function run(file: string, args: readonly string[]): Buffer {
  return execFileSync(file, args, { cwd: folder, stdio: 'pipe' });
}

function save(image: Uint8Array, context: TestContext): void {
  if (missing !== undefined) context.skip(missing);
  writeFileSync(join(folder, 'image'), image);
}

function read(path: string): Buffer {
  return run('mcopy', ['-i', 'image', `::${path}`, '-']);
}

function check(): void {
  const said = run('fsck.vfat', ['-n', '-v', 'image']).toString();
  expect(said).not.toMatch(/differ|wrong|bad|dirty|orphan/i);
}

const noCloud: Seed = {
  kind: 'noCloud',
  metaData: 'instance-id: i-1\nlocal-hostname: grüße\n',
  userData: `#cloud-config\n${'# long\n'.repeat(100_000)}`,
  networkConfig: 'version: 2\n',
};
const configDrive: Seed = {
  kind: 'configDrive',
  metaData: '{"uuid": "1"}',
  userData: '{"ignition": {"version": "3.4.0"}}',
};

test.for([512, 4096])('the seed is sound with blocks of %i bytes', (blockBytes, context) => {
  for (const seed of [noCloud, configDrive]) {
    save(makeSeed(seed, blockBytes), context);
    check();
  }
});

test('the seed gives back every file under its own name', (context) => {
  save(makeSeed(noCloud, 512), context);
  const names = run('mdir', ['-b', '-i', 'image', '::']).toString().trim().split('\n');
  expect(names).toEqual(['::/meta-data', '::/user-data', '::/network-config']);
  expect(read('user-data').toString()).toBe(noCloud.userData);
  expect(read('meta-data').toString()).toBe(noCloud.metaData);
  expect(run('blkid', ['-p', 'image']).toString()).toContain('LABEL="CIDATA"');
});

test('the seed carries an Ignition document unchanged in a config drive', (context) => {
  save(makeSeed(configDrive, 4096), context);
  expect(read('openstack/latest/user_data').toString()).toBe(configDrive.userData);
  expect(read('openstack/latest/meta_data.json').toString()).toBe(configDrive.metaData);
  expect(run('blkid', ['-p', 'image']).toString()).toContain('LABEL="config-2"');
});

test('the seed has folders larger than a cluster, and tables of 12 bits', (context) => {
  const files = Array.from({ length: 60 }, (_, index) => ({
    path: `folder/a-name-that-is-rather-long-${index}.yaml`,
    content: new TextEncoder().encode(`${index}`.repeat(index * 40)),
  }));
  save(makeFat({ sizeBytes: 1024 * 1024, blockBytes: 512, label: 'X', files }), context);
  check();
  for (const { path, content } of files.slice(-3)) expect(read(path).equals(content)).toBe(true);
});

test('the seed refuses what does not fit, and what is no JSON', () => {
  const large = { ...noCloud, userData: 'x'.repeat(seedFilesBytesMax + 1) };
  expect(() => makeSeed(large, 512)).toThrow(/bytes; at most 4194304/);
  expect(() => makeSeed({ ...configDrive, metaData: '{' }, 512)).toThrow('metaData');
  const fat = (path: string) =>
    makeFat({ sizeBytes: 1024 * 1024, blockBytes: 512, label: 'X', files: [file(path)] });
  const file = (path: string) => ({ path, content: new Uint8Array(2 * 1024 * 1024) });
  expect(() => fat('a')).toThrow('does not fit');
  for (const path of ['', '../a', 'a//b', '.', 'a b', 'ü']) {
    expect(() => fat(path), path).toThrow('is no name for a file');
  }
});
