import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TreeEntry } from '@rackwright/platform';
import { nodeDisk } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { parseConfig, parseWholeConfig } from './config.ts';
import { extendedInitrd, withOverlay } from './ramdisk-overlay.ts';

const file = (path: string, text = 'x'): TreeEntry => {
  return { kind: 'file', path, mode: 0o644, bytes: Buffer.from(text) };
};
const tree: readonly TreeEntry[] = [
  { kind: 'folder', path: 'lib' },
  file('lib/firmware/bnx2x/a.fw', 'firmware'),
  { kind: 'link', path: 'lib/firmware/b.fw', target: 'bnx2x/a.fw' },
  file('usr/lib/firmware/c.fw'),
  file('usr/lib/modules/6.1.0/updates/d.ko'),
];

test.each([0, 1, 2, 3, 4, 5])(
  'behind %i bytes the archive begins where the kernel looks',
  (bytes) => {
    const initrd = new Uint8Array(bytes).fill(7);
    const extended = Buffer.from(extendedInitrd(initrd, tree));
    const at = Math.ceil(bytes / 4) * 4;
    expect(extended.subarray(0, bytes)).toEqual(Buffer.from(initrd));
    expect(extended.subarray(bytes, at)).toEqual(Buffer.alloc(at - bytes));
    expect(extended.toString('latin1', at, at + 6)).toBe('070701');
  },
);

test('another program reads the archive: folders first, Debian’s places where they count', () => {
  const archive = extendedInitrd(new Uint8Array(), tree);
  const listed = execFileSync('busybox', ['cpio', '-t'], { input: archive, stdio: 'pipe' });
  expect(listed.toString().trim().split('\n')).toEqual([
    ...['lib', 'lib/firmware', 'lib/firmware/bnx2x'],
    ...['lib/modules', 'lib/modules/6.1.0', 'lib/modules/6.1.0/updates'],
    ...['lib/firmware/b.fw', 'lib/firmware/bnx2x/a.fw', 'lib/firmware/c.fw'],
    'lib/modules/6.1.0/updates/d.ko',
  ]);
});

test.each([
  'init',
  'usr/lib/rackwright/runner.cjs',
  'usr/bin/node',
  'etc/rackwright',
  // What erases, and what everything is loaded by.
  'usr/sbin/blkdiscard',
  'bin/busybox',
  'lib64/ld-linux-x86-64.so.2',
  'lib/x86_64-linux-gnu/libc.so.6',
  'etc/ld.so.preload',
  'lib/firmware.d/a',
])('the overlay refuses %s, which is neither firmware nor a driver', (path) => {
  const text = `runner.overlay has to be a folder without ${path}; it may hold `;
  expect(() => extendedInitrd(new Uint8Array(), [file(path)])).toThrow(text);
});

test('the overlay may hold the other files of firmware and driver packages', () => {
  const beside = ['usr/share/doc/firmware-bnx2x/copyright', 'etc/modprobe.d/bnx2x.conf'];
  const archive = extendedInitrd(
    new Uint8Array(),
    beside.map((path) => file(path)),
  );
  for (const path of beside) expect(Buffer.from(archive).toString('latin1')).toContain(path);
});

test('the overlay refuses two files for one place', () => {
  const two = [file('lib/firmware/a'), file('usr/lib/firmware/a')];
  expect(() => extendedInitrd(new Uint8Array(), two)).toThrow('it has it twice');
});

test('hosts get the ramdisk with its overlay, made again only when that changes', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-overlay-'));
  const stateFolder = join(folder, 'state');
  const initrd = join(folder, 'initrd.zst');
  const disk = nodeDisk();
  try {
    await disk.writeAtomic(initrd, Buffer.from('ramdisk'), 0o600);
    const config = configWith({ stateFolder, initrd, overlay: '/overlay' });
    const asked: string[] = [];
    const readTree = async (path: string) => {
      asked.push(path);
      return tree;
    };
    const written: string[] = [];
    const counting: typeof disk = {
      ...disk,
      writeAtomic: (path, ...rest) => {
        written.push(path);
        return disk.writeAtomic(path, ...rest);
      },
    };
    const lines: object[] = [];
    const log = { ...quietLog, info: (fields: object) => void lines.push(fields) };
    const parts = { disk: counting, log, readTree };
    const first = await withOverlay(config, parts);
    const second = await withOverlay(config, parts);
    expect(second).toEqual(first);
    expect(asked).toEqual(['/overlay', '/overlay']);
    const path = join(stateFolder, 'initrd-with-overlay');
    expect(written).toEqual([path]);
    expect(first.files).toEqual([
      { name: 'vmlinuz', path: '/boot/vmlinuz' },
      { name: 'initrd', path },
    ]);
    const bytes = readFileSync(path);
    expect(bytes).toEqual(extendedInitrd(Buffer.from('ramdisk'), tree));
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    expect(lines).toMatchObject([{ sha256 }, { sha256 }]);
    await disk.writeAtomic(initrd, Buffer.from('another ramdisk'), 0o600);
    await withOverlay(config, parts);
    expect(written).toEqual([path, path]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('without a folder no file is read; a folder without a ramdisk is an error', async () => {
  const disk = { read: async () => undefined, writeAtomic: never, makeFolder: never };
  const parts = { disk, log: quietLog, readTree: never };
  const plain = configWith({ stateFolder: '/s', initrd: '/initrd' });
  expect(await withOverlay(plain, parts)).toBe(plain);
  const overlaid = configWith({ stateFolder: '/s', initrd: '/initrd', overlay: '/o' });
  await expect(withOverlay(overlaid, parts)).rejects.toThrow('there is no ramdisk at /initrd');
});

test('the overlay is not served if the server may not read it', () => {
  const text = JSON.stringify({
    ...settings({ stateFolder: '/s', initrd: '/initrd', overlay: '/o' }),
    http: { filesPort: 8081 },
  });
  expect(() => parseWholeConfig(text)).toThrow('runner.overlay has to be absent with');
});

interface Paths {
  readonly stateFolder: string;
  readonly initrd: string;
  readonly overlay?: string;
}

function settings({ stateFolder, initrd, ...runner }: Paths) {
  const files = [
    { name: 'vmlinuz', path: '/boot/vmlinuz' },
    { name: 'initrd', path: initrd },
  ];
  return { serverAddress: '10.0.0.3', stateFolder, files, runner };
}

function configWith(paths: Paths) {
  return parseConfig(JSON.stringify(settings(paths)));
}

function never(): Promise<never> {
  throw new Error('it is not asked for');
}
