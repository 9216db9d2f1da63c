/** The host's fields in the flags of `host create` and `host update`. */
import { CleaningMethod, ShutdownMode } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { UsageError } from '../../failure.ts';
import { specFrom } from './spec.ts';

test.each([
  ['sanitize-block', CleaningMethod.SANITIZE_BLOCK],
  ['ata-enhanced-erase', CleaningMethod.ATA_ENHANCED_ERASE],
  ['nvme-format', CleaningMethod.NVME_FORMAT],
  ['strongest', CleaningMethod.UNSPECIFIED],
] as const)('--erasure-method %s becomes the method of the spec', (erasureMethod, method) => {
  const { spec, paths } = specFrom({ erasureMethod });
  expect(spec).toEqual({ cleaning: { method } });
  expect(paths).toEqual(['spec.cleaning.method']);
});

test('--boot-medium names media by digest and size; none takes them away', () => {
  const sha256 = 'AB'.repeat(32);
  const { spec, paths } = specFrom({ bootMedium: [`${sha256}:1048576`] });
  const bootMedia = [{ sha256: sha256.toLowerCase(), sizeBytes: 1_048_576n }];
  expect(spec).toEqual({ cleaning: { bootMedia } });
  expect(paths).toEqual(['spec.cleaning.boot_media']);
  expect(specFrom({ bootMedium: ['none'] })).toMatchObject({
    spec: { cleaning: { bootMedia: [] } },
    paths: ['spec.cleaning.boot_media'],
  });
});

test.each(['', 'none:1', `${'a'.repeat(63)}:1`, 'a'.repeat(64), `${'a'.repeat(64)}:-1`])(
  '--boot-medium "%s" is refused with what to give',
  (medium) => {
    expect(() => specFrom({ bootMedium: [medium] })).toThrow(UsageError);
    expect(() => specFrom({ bootMedium: [medium] })).toThrow(/SHA-256 in hex, a colon/);
  },
);

test('--shutdown says how power is taken from the system; usual gives the choice back', () => {
  expect(specFrom({ shutdown: 'graceful', shutdownTimeout: 120 })).toMatchObject({
    spec: { shutdown: { mode: ShutdownMode.GRACEFUL, timeoutSeconds: 120 } },
    paths: ['spec.shutdown.mode', 'spec.shutdown.timeout_seconds'],
  });
  expect(specFrom({ shutdown: 'usual' })).toMatchObject({
    spec: { shutdown: { mode: ShutdownMode.UNSPECIFIED } },
    paths: ['spec.shutdown.mode'],
  });
});
