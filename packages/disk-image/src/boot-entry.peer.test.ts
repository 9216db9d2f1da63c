/** Boot entries as `efibootmgr` reads them. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type BootEntry, type BootPosition, bootEntryWrites } from './boot-entry.ts';

const globalVendor = '8be4df61-93ca-11d2-aa0d-00e098032b8c';
let folder = '';

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-efi-'));
});

afterAll(() => rmSync(folder, { recursive: true }));

const entry: BootEntry = {
  description: 'Rackwright image',
  partition: {
    ...{ number: 15, type: '', id: 'fedcba98-7654-3210-8899-aabbccddeeff', name: 'esp' },
    ...{ offsetBytes: 4 * 1024 * 1024, sizeBytes: 124 * 1024 * 1024 },
  },
  blockBytes: 512,
  loader: '\\EFI\\debian\\shimx64.efi',
};

/** What the variables are after the writes. */
function apply(
  variables: Map<string, Uint8Array>,
  wanted = entry,
  position: BootPosition = 'first',
): string[] {
  const { writes } = bootEntryWrites(variables, wanted, position);
  for (const { name, content } of writes) variables.set(name, content);
  return writes.map(({ name }) => name);
}

test('the runner puts its boot entry first, and uses it again', () => {
  const variables = new Map<string, Uint8Array>([['BootOrder', Uint8Array.of(3, 0, 1, 0)]]);
  apply(variables, { ...entry, description: 'Rackwright image of another' });
  expect(apply(variables)).toEqual(['Boot0001', 'BootOrder']);
  expect(variables.get('BootOrder')).toEqual(Buffer.from([1, 0, 0, 0, 3, 0]));
  // Boot0001 stood in the order already; nothing is written that is there.
  expect(apply(variables)).toEqual([]);
  expect(apply(variables, { ...entry, loader: '\\EFI\\BOOT\\BOOTX64.EFI' })).toEqual(['Boot0001']);
  expect(() => apply(variables, { ...entry, loader: '' })).toThrow('cannot stand in a boot entry');
});

test('efibootmgr reads the boot entry as it was written', (context) => {
  const variables = new Map<string, Uint8Array>();
  apply(variables);
  for (const [name, content] of variables) {
    const attributes = Uint8Array.of(7, 0, 0, 0);
    const path = join(folder, `${name}-${globalVendor}`);
    writeFileSync(path, Buffer.concat([attributes, content]));
  }
  let shown: string;
  try {
    const env = { ...process.env, EFIVARFS_PATH: `${folder}/` };
    shown = execFileSync('efibootmgr', ['-v'], { encoding: 'utf8', env, stdio: 'pipe' });
  } catch (error) {
    return context.skip(`efibootmgr does not run here: ${String(error).split('\n')[0]}`);
  }
  expect(shown).toContain('BootOrder: 0000');
  expect(shown).toMatch(/Boot0000\* Rackwright image\s/);
  const disk = 'HD(15,GPT,fedcba98-7654-3210-8899-aabbccddeeff,0x2000,0x3e000)';
  expect(shown).toContain(`${disk}/File(\\EFI\\debian\\shimx64.efi)`);
});
