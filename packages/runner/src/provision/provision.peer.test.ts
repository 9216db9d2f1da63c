/**
 * Images that Debian's tools make, put onto a real block device: a loop device over a file of our
 * own. The tools then report its content.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Seed } from '@rackwright/disk-image';
import { nodeExec, nodeHashes } from '@rackwright/platform/node';
import { afterAll, afterEach, beforeAll, beforeEach, expect, type TestContext, test } from 'vitest';
import { openDirect } from '../linux/direct-region.ts';
import { unxz } from '../linux/xz-filter.ts';
import { mib, noise, sha256, sourceOf } from './provision.fixture.ts';
import { type ProvisionResult, provisionDisk } from './provision.ts';

const diskBytes = 48 * mib;
const exec = nodeExec(undefined, 'ours');
const seed: Seed = { kind: 'noCloud', metaData: 'instance-id: i-1\n', userData: '#cloud-config\n' };
let folder = '';
let raw: Buffer;
let loop = '';
let missing: string | undefined;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-image-'));
  try {
    makeImage();
    raw = readFileSync(join(folder, 'raw'));
  } catch (error) {
    missing = `no image can be made here: ${String(error).split('\n')[0]}`;
  }
});

beforeEach(() => {
  if (missing !== undefined) return;
  writeFileSync(join(folder, 'disk'), Buffer.alloc(4 * mib, 'PATTERN!'));
  truncateSync(join(folder, 'disk'), diskBytes);
  // An older table, whose backup lies at the end.
  run('sfdisk', ['--quiet', 'disk'], 'label: gpt\nstart=2048 name=old\n');
  try {
    loop = run('losetup', ['--find', '--show', join(folder, 'disk')]).trim();
  } catch {
    missing = 'no loop device can be made here';
  }
});

afterEach(() => {
  if (loop !== '') execFileSync('losetup', ['--detach', loop]);
  loop = '';
});

afterAll(() => rmSync(folder, { recursive: true }));

function run(file: string, args: readonly string[], input = ''): string {
  const environment = { ...process.env, PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/sbin` };
  const options = {
    cwd: folder,
    encoding: 'utf8',
    input,
    stdio: 'pipe',
    env: environment,
  } as const;
  return execFileSync(file, args, options);
}

/** A GUID table, an EFI system partition, and an ext4 with files. */
function makeImage(): void {
  const script = `label: gpt
start=2048 size=4096 type=U name=esp
start=6144 size=24576 name=root
`;
  mkdirSync(join(folder, 'tree/etc'), { recursive: true });
  writeFileSync(join(folder, 'tree/etc/noise'), noise(2 * mib));
  writeFileSync(join(folder, 'raw'), '');
  truncateSync(join(folder, 'raw'), 16 * mib);
  run('sfdisk', ['--quiet', 'raw'], script);
  const place = ['-E', `offset=${6_144 * 512}`];
  run('mkfs.ext4', ['-q', '-F', '-d', 'tree', ...place, 'raw', `${24_576 / 2}k`]);
}

const makers: Readonly<Record<string, () => string>> = {
  raw: () => 'raw',
  zstd: () => made('raw.zst', 'zstd', ['-q', '-f', '-k', 'raw']),
  'zstd in frames': () => {
    const frames = [raw.subarray(0, 7 * mib), raw.subarray(7 * mib)].map((part, index) => {
      writeFileSync(join(folder, `part${index}`), part);
      run('zstd', ['-q', '-f', `part${index}`]);
      return readFileSync(join(folder, `part${index}.zst`));
    });
    writeFileSync(join(folder, 'frames'), Buffer.concat(frames));
    return 'frames';
  },
  gzip: () => made('raw.gz', 'gzip', ['-f', '-k', '-1', 'raw']),
  xz: () => made('raw.xz', 'xz', ['-f', '-k', '-1', '-T1', 'raw']),
  qcow2: () => made('q', 'qemu-img', ['convert', '-O', 'qcow2', 'raw', 'q']),
  'compressed qcow2': () => {
    return made('qc', 'qemu-img', ['convert', '-c', '-O', 'qcow2', 'raw', 'qc']);
  },
};

function made(name: string, file: string, args: readonly string[]): string {
  run(file, args);
  return name;
}

async function provision(file: Uint8Array, digest = sha256(file)): Promise<ProvisionResult> {
  const open = await openDirect(loop, exec);
  try {
    const disk = { open, sizeBytes: diskBytes, blockBytes: 512 };
    const image = { sha256: digest, contentSha256: sha256(raw) };
    const plan = { image, grow: true, seed, firmware: 'uefi' as const };
    return await provisionDisk(plan, sourceOf(file), disk, () => {}, new AbortController().signal, {
      unxz,
      hashes: nodeHashes(0),
      requestBegin: async () => ({ kind: 'granted' }),
    });
  } finally {
    await open.close();
  }
}

function skipWithout(context: TestContext): void {
  if (missing !== undefined) context.skip(missing);
}

test.for(Object.keys(makers))('an image comes onto a block device: %s', async (name, context) => {
  skipWithout(context);
  const file = readFileSync(join(folder, makers[name]?.() ?? ''));
  const end = await provision(file);
  expect(end).toMatchObject({
    kind: 'complete',
    installed: {
      sizeBytes: raw.length,
      contentSha256: sha256(raw),
      grown: { number: 2, addedBytes: (39 - 15) * mib },
      efiSystem: { number: 1, offsetBytes: mib },
    },
  });
  expect(run('sgdisk', ['--verify', loop])).toContain('No problems found');
  const { partitions } = JSON.parse(run('sfdisk', ['--json', loop])).partitiontable;
  expect(partitions).toMatchObject([
    { start: 2048, size: 4_096, name: 'esp' },
    { start: 6_144, size: (39 - 3) * 2048, name: 'root' },
    { start: 39 * 2048, size: 8 * 2048, name: 'cidata' },
  ]);
  const root = `${loop}?offset=${6_144 * 512}`;
  expect(run('e2fsck', ['-n', '-f', root])).toMatch(/: 13\/\d+ files/);
  expect(run('blkid', ['-p', '-O', String(39 * mib), loop])).toContain('LABEL="CIDATA"');
});

test('an xz file that is broken, cut or of another digest is found', async (context) => {
  skipWithout(context);
  const file = readFileSync(join(folder, makers['xz']?.() ?? ''));
  const broken = Buffer.from(file);
  broken.fill(0x5a, broken.length - 9_000, broken.length - 8_000);
  const cut = file.subarray(0, file.length - 3_000);
  for (const [bytes, digest, fault] of [
    [broken, sha256(broken), 'malformed'],
    [broken, sha256(file), 'digestMismatch'],
    [cut, sha256(cut), 'truncated'],
  ] as const) {
    expect(await provision(bytes, digest)).toMatchObject({ kind: 'failed', fault, begun: true });
    // Neither a table nor its backup is there any more.
    expect(() => run('sfdisk', ['--dump', loop])).toThrow('not contain a recognized');
  }
});
