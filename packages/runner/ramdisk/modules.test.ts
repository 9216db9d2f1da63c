import { expect, test } from 'vitest';
import { moduleClosure, parseModulesDep } from './modules.ts';

const DEP = [
  'kernel/drivers/nvme/host/nvme.ko: kernel/drivers/nvme/host/nvme-core.ko kernel/lib/t10.ko',
  'kernel/drivers/nvme/host/nvme-core.ko: kernel/lib/t10.ko',
  'kernel/lib/t10.ko:',
  'kernel/drivers/block/virtio_blk.ko.xz:',
  '',
].join('\n');

test('a module brings what it needs, and nothing else', () => {
  const { paths, unknown } = moduleClosure(parseModulesDep(DEP), ['nvme']);
  expect(paths).toEqual([
    'kernel/drivers/nvme/host/nvme-core.ko',
    'kernel/drivers/nvme/host/nvme.ko',
    'kernel/lib/t10.ko',
  ]);
  expect(unknown).toEqual([]);
});

test('names are found whether written with "-" or "_", compressed or not', () => {
  const { paths } = moduleClosure(parseModulesDep(DEP), ['nvme_core', 'virtio-blk']);
  expect(paths).toContain('kernel/drivers/nvme/host/nvme-core.ko');
  expect(paths).toContain('kernel/drivers/block/virtio_blk.ko.xz');
});

test('a name without a module file is named, not lost', () => {
  expect(moduleClosure(parseModulesDep(DEP), ['unix', 'nvme']).unknown).toEqual(['unix']);
});
