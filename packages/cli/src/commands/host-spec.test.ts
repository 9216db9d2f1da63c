/** What the flags of `host create` and `host update` say of a host. */
import { CleaningMethod } from '@rackwright/api';
import { expect, test } from 'vitest';
import { specFrom } from './host-spec.ts';

test.each([
  ['sanitize-block', CleaningMethod.SANITIZE_BLOCK],
  ['ata-enhanced-erase', CleaningMethod.ATA_ENHANCED_ERASE],
  ['nvme-format', CleaningMethod.NVME_FORMAT],
  ['strongest', CleaningMethod.UNSPECIFIED],
] as const)('--erasure-method %s', (erasureMethod, method) => {
  const { spec, paths } = specFrom({ erasureMethod });
  expect(spec).toEqual({ cleaning: { method } });
  expect(paths).toEqual(['spec.cleaning.method']);
});
