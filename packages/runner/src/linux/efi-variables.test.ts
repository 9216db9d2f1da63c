import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bootEntryWrites } from '@rackwright/disk-image';
import type { Exec } from '@rackwright/platform';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { mountEfiVariables, readEfiVariables, writeEfiVariables } from './efi-variables.ts';

const vendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c';
let folder = '';

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-efi-'));
});

afterEach(() => rmSync(folder, { recursive: true }));

const entry = {
  description: 'Rackwright image',
  partition: {
    ...{ number: 1, type: '', id: 'fedcba98-7654-3210-8899-aabbccddeeff', name: 'esp' },
    ...{ offsetBytes: 1024 * 1024, sizeBytes: 1024 * 1024 },
  },
  blockBytes: 512,
  loader: '\\EFI\\BOOT\\BOOTX64.EFI',
};

test('the runner reads boot entries and their order, and writes what comes of them', async () => {
  writeFileSync(join(folder, `BootOrder-${vendor}`), Uint8Array.of(7, 0, 0, 0, 5, 0));
  writeFileSync(join(folder, `Timeout-${vendor}`), Uint8Array.of(7, 0, 0, 0, 5, 0));
  writeFileSync(join(folder, 'Boot0000-00000000-0000-0000-0000-000000000000'), 'of another');
  const before = await readEfiVariables(folder);
  expect([...before]).toEqual([['BootOrder', Uint8Array.of(5, 0)]]);
  await writeEfiVariables(bootEntryWrites(before, entry, 'first').writes, folder);
  const order = readFileSync(join(folder, `BootOrder-${vendor}`));
  expect([...order]).toEqual([7, 0, 0, 0, 0, 0, 5, 0]);
  expect(readdirSync(folder)).toContain(`Boot0000-${vendor}`);
  const after = bootEntryWrites(await readEfiVariables(folder), entry, 'first');
  expect(after).toEqual({ name: 'Boot0000', writes: [] });
});

test('the runner reports it when there are no EFI variables, or none can be written', async () => {
  const nowhere = join(folder, 'nowhere');
  expect([...(await readEfiVariables(nowhere))]).toEqual([]);
  const writing = writeEfiVariables([{ name: 'BootOrder', content: new Uint8Array(2) }], nowhere);
  await expect(writing).rejects.toThrow(/UEFI variables: write of BootOrder: ENOENT/);
});

/** A kernel that does not load modules by itself. */
function kernel(): { readonly exec: Exec; readonly mounted: () => boolean } {
  let isLoaded = false;
  let isMounted = false;
  const exec: Exec = {
    run: async ({ file, args }) => {
      if (file === 'modprobe') isLoaded = args.includes('efivarfs');
      isMounted = file === 'mount' && isLoaded;
      const stderr = isLoaded ? '' : 'mounting efivarfs failed: No such device';
      return { kind: 'exited', code: isLoaded ? 0 : 255, stdout: '', stderr };
    },
  };
  return { exec, mounted: () => isMounted };
}

test('EFI variables are mounted also if the kernel does not know them yet', async () => {
  const { exec, mounted } = kernel();
  await mountEfiVariables(exec, folder);
  expect(mounted()).toBe(true);
});
