/** File systems that the code of the product has made, read by code that knows nothing of it. */
import { makeSeed, type Seed } from '@rackwright/disk-image';
import { expect, test } from 'vitest';
import { readFat } from './fat.ts';

const userData = `#cloud-config\n${'# so long that it fills many clusters\n'.repeat(2_000)}`;
const noCloud: Seed = {
  ...{ kind: 'noCloud', metaData: '{"local-hostname": "h1"}\n', userData },
  ...{ networkConfig: 'version: 2\n', vendorData: '#cloud-config\n{}\n' },
};

test.for([512, 4096])('every file is read under its own name, with blocks of %i bytes', (size) => {
  const found = readFat(Buffer.from(makeSeed(noCloud, size)));
  const files = [...(found?.files ?? [])].map(([name, content]) => [name, content.toString()]);
  expect(found?.label).toBe('CIDATA');
  expect(Object.fromEntries(files)).toEqual({
    'meta-data': '{"local-hostname": "h1"}\n',
    'user-data': userData,
    'network-config': 'version: 2\n',
    'vendor-data': '#cloud-config\n{}\n',
  });
});

test('the reader finds no file in a root that holds a folder only, and none in other bytes', () => {
  const drive: Seed = { kind: 'configDrive', metaData: '{}', userData: '' };
  const found = readFat(Buffer.from(makeSeed(drive, 512)));
  expect([found?.label, found?.files.size]).toEqual(['config-2', 0]);
  expect(readFat(Buffer.alloc(4_096))).toBeUndefined();
  expect(readFat(Buffer.alloc(10))).toBeUndefined();
});
