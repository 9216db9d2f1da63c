/** The boot medium, as Debian's tools see it. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { makeBootMedium } from './iso.ts';

let folder = '';
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-medium-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const loader = (seed: number): Uint8Array =>
  Uint8Array.from({ length: 1_000_003 }, (_, at) => (at * seed) & 0xff);
const run = (file: string, args: readonly string[]): Buffer =>
  execFileSync(file, args, { cwd: folder, stdio: 'pipe' });
const missing = ['blkid', 'fsck.vfat', 'mcopy'].find((program) => {
  try {
    execFileSync('which', [program], { stdio: 'pipe' });
    return false;
  } catch {
    return true;
  }
});

test('the medium is a CD whose boot image holds the loaders at their UEFI paths', (context) => {
  if (missing !== undefined) context.skip(`no ${missing}`);
  const [x64, arm64] = [loader(3), loader(5)];
  const image = makeBootMedium({ uefiX64: x64, uefiArm64: arm64 });
  writeFileSync(join(folder, 'cd'), image);
  const said = run('blkid', ['-p', '-o', 'export', 'cd']).toString();
  expect(said).toContain('TYPE=iso9660');
  expect(said).toContain('BOOT_SYSTEM_ID=EL\\ TORITO\\ SPECIFICATION');
  // Found by the catalog, as by firmware.
  const view = new DataView(image.buffer);
  const catalog = view.getUint32(17 * 2048 + 71, true) * 2048;
  const start = view.getUint32(catalog + 40, true) * 2048;
  const blocks = view.getUint16(catalog + 38, true);
  writeFileSync(join(folder, 'fat'), image.subarray(start, start + blocks * 512));
  expect(run('fsck.vfat', ['-n', '-v', 'fat']).toString()).not.toMatch(/differ|wrong|bad|dirty/i);
  const read = (name: string): Buffer => run('mcopy', ['-i', 'fat', `::EFI/BOOT/${name}`, '-']);
  expect(read('BOOTX64.EFI').equals(x64)).toBe(true);
  expect(read('BOOTAA64.EFI').equals(arm64)).toBe(true);
});
