import { expect, test } from 'vitest';
import { type BootProfile, chooseBoot, unknownProfile } from './profiles.ts';

const secure: BootProfile = {
  name: 'secure',
  loaders: { uefiX64: 'shimx64.efi' },
  kernelArguments: ['console=ttyS1,115200'],
  firmware: 'uefi',
};
const rack = {
  loaders: { bios: 'undionly.kpxe', uefiX64: 'snponly.efi' },
  kernelArguments: ['quiet'],
  profiles: [secure],
};

test('a host without a profile boots as its rack does', () => {
  expect(chooseBoot(rack, undefined)).toMatchObject({
    loaders: rack.loaders,
    kernelArguments: ['quiet'],
  });
});

test('a profile takes the place of the loaders that it names, and adds its words', () => {
  expect(chooseBoot(rack, 'secure')).toEqual({
    loaders: { bios: 'undionly.kpxe', uefiX64: 'shimx64.efi' },
    kernelArguments: ['quiet', 'console=ttyS1,115200'],
  });
});

test('a profile that is not configured is nobody’s, and is shown with those that are', () => {
  expect(chooseBoot(rack, 'sécure')).toBeUndefined();
  expect(unknownProfile('s', [secure])).toBe(
    'the host\'s label boot is "s"; this rack\'s agent has the boot profiles secure',
  );
  expect(unknownProfile('s', [])).toContain('no bootProfiles in its configuration');
});
