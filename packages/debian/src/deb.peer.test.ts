import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DebianPackageContent, debianPackage, fileNameOf } from './deb.ts';

const content: DebianPackageContent = {
  name: 'example',
  version: '1.0',
  architecture: 'all',
  fields: { Maintainer: 'Somebody <somebody@example.org>', Section: 'admin', Priority: 'optional' },
  description: ['an example', 'first line', '', 'after an empty one'],
  files: [
    {
      kind: 'file',
      path: `usr/share/${'long/'.repeat(24)}name`,
      mode: 0o600,
      bytes: Buffer.alloc(70_000, 'x'),
    },
    { kind: 'file', path: 'etc/example.yaml', mode: 0o644, bytes: Buffer.from('a: 1\n') },
    { kind: 'link', path: 'usr/bin/example', target: '../lib/example' },
  ],
  conffiles: ['/etc/example.yaml'],
  scripts: { postinst: '#!/bin/sh\nset -e\n' },
  compressible: true,
};

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'deb-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const isThere = (() => {
  try {
    execFileSync('dpkg-deb', ['--version']);
    return true;
  } catch {
    return false;
  }
})();

beforeEach((context) => {
  if (!isThere) context.skip('peer missing: dpkg-deb: run npm run peers');
});

describe('a package, as dpkg-deb reads it', () => {
  const read = (...args: string[]): string => {
    const file = join(folder, fileNameOf(content));
    writeFileSync(file, debianPackage(content, 1_700_000_000));
    return execFileSync('dpkg-deb', [args[0] ?? '', file, ...args.slice(1)], {
      encoding: 'utf8',
      env: { ...process.env, TZ: 'UTC' },
    });
  };

  test('says what it is', () => {
    expect(read('--field')).toBe(
      [
        'Package: example',
        'Version: 1.0',
        'Architecture: all',
        'Installed-Size: 99',
        'Maintainer: Somebody <somebody@example.org>',
        'Section: admin',
        'Priority: optional',
        'Description: an example',
        ' first line',
        ' .',
        ' after an empty one',
        '',
      ].join('\n'),
    );
  });

  test('has its files, with folders above them, of root and of the given time', () => {
    const lines = read('--contents').trimEnd().split('\n');
    expect(lines[0]).toMatch(/^drwxr-xr-x root\/root +0 2023-11-14 22:13 \.\/$/);
    expect(lines).toHaveLength(32);
    expect(lines.at(-1)).toMatch(/^-rw------- root\/root +70000 .*long\/name$/);
    expect(lines.find((line) => line.startsWith('l'))).toMatch(/example -> \.\.\/lib\/example$/);
  });

  test('has its control files', () => {
    expect(read('--info', 'conffiles')).toBe('/etc/example.yaml\n');
    expect(read('--info', 'postinst')).toBe('#!/bin/sh\nset -e\n');
    expect(read('--info', 'md5sums')).toContain('  etc/example.yaml\n');
  });

  test('is the same bytes each time', () => {
    expect(debianPackage(content, 7)).toEqual(debianPackage(content, 7));
  });
});
