import { expect, test } from 'vitest';
import { findOtherFallbacks, findOtherVersions, newestVersion } from './release.ts';

test('the check finds a manifest of another version, and a dependency on one', () => {
  const manifests = [
    { name: 'root', version: '1.2.3', devDependencies: { vitest: '5.1.0' } },
    { name: 'dhcp', version: '1.2.2', dependencies: { '@rackwright/bytes': '1.2.3' } },
    { name: 'tftp', version: '1.2.3', dependencies: { '@rackwright/bytes': '1.2.2' } },
    { name: 'bytes' },
  ];
  expect(findOtherVersions(manifests, '1.2.3')).toEqual([
    'dhcp: version is 1.2.2, not 1.2.3',
    'tftp: @rackwright/bytes is 1.2.2, not 1.2.3',
    'bytes: version is undefined, not 1.2.3',
  ]);
});

test('the check finds a fallback of another version, only where a bundle has its version', () => {
  const text = "typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? x : '1.2.2'";
  expect(findOtherFallbacks({ path: 'version.ts', text }, '1.2.3')).toHaveLength(1);
  expect(findOtherFallbacks({ path: 'version.ts', text }, '1.2.2')).toEqual([]);
  expect(findOtherFallbacks({ path: 'peer.ts', text: "'1.2.2'" }, '1.2.3')).toEqual([]);
});

test('the check reads the newest section of a changelog, dated or not', () => {
  const older = '## 0.1.0 (2026-01-31)\n\ntext\n';
  expect(newestVersion(`# Changelog\n\n${older}`)).toEqual({
    version: '0.1.0',
    date: '2026-01-31',
  });
  const newer = `# Changelog\n\n## 0.2.0 (unreleased)\n\n${older}`;
  expect(newestVersion(newer)).toEqual({ version: '0.2.0', date: undefined });
  expect(() => newestVersion('# Changelog\n\n## Next\n')).toThrow('CHANGELOG.md');
});
