import type { LargeFiles } from '@rackwright/platform';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseConfig, parseWholeConfig } from './config.ts';
import { kernelArchitecture, kernelProblem } from './kernel-file.ts';

function kernel(put: (bytes: Buffer) => void): Buffer {
  const bytes = Buffer.alloc(1024);
  put(bytes);
  return bytes;
}

const pe = (machine: number) =>
  kernel((bytes) => {
    bytes.write('MZ');
    bytes.writeUInt32LE(0x80, 0x3c);
    bytes.write('PE\0\0', 0x80);
    bytes.writeUInt16LE(machine, 0x84);
  });

test.each([
  ['a signed kernel of x86-64', pe(0x8664), 'amd64'],
  ['one of arm64', pe(0xaa64), 'arm64'],
  ['one of 32 bits', pe(0x14c), undefined],
  ['one of x86 without EFI', kernel((bytes) => bytes.write('HdrS', 0x202)), 'amd64'],
  ['an Image of arm64 without EFI', kernel((bytes) => bytes.write('ARM\x64', 0x38)), 'arm64'],
  ['a header that points beyond', pe(0x8664).subarray(0, 0x80), undefined],
  ['an empty file', Buffer.alloc(0), undefined],
])('%s tells what it is for', (_what, bytes, wanted) => {
  expect(kernelArchitecture(bytes)).toBe(wanted);
});

test('any bytes give an answer', () => {
  const begins = fc.constantFrom(pe(0x8664), Buffer.from('MZ'), Buffer.alloc(70));
  fc.assert(
    fc.property(begins, fc.uint8Array({ maxLength: 200 }), fc.nat(140), (begin, noise, at) => {
      const bytes = Buffer.concat([begin.subarray(0, at), noise]);
      expect(['amd64', 'arm64', undefined]).toContain(kernelArchitecture(bytes));
    }),
  );
});

test.each([
  ['amd64', pe(0x8664), undefined],
  ['arm64', pe(0xaa64), undefined],
  ['arm64', Buffer.from('a text'), undefined],
  [
    'arm64',
    pe(0x8664),
    'kernel for arm64; /k is one for amd64; those for arm64 are of the package',
  ],
  ['amd64', pe(0xaa64), 'kernel for amd64; /k is one for arm64'],
])('hosts of %s are given only a kernel for them', async (architecture, bytes, text) => {
  const disk: Pick<LargeFiles, 'find' | 'read'> = {
    find: async () => ({ sizeBytes: bytes.length, usedAtMs: 0 }),
    async *read() {
      yield bytes;
    },
  };
  const told = await kernelProblem(parseConfig(settings(architecture, '/k')), disk);
  if (text === undefined) expect(told).toBeUndefined();
  else expect(told).toEqual({ key: 'runner.kernel', text: expect.stringContaining(text) });
});

test('arm64 with the kernel of the package is refused before anything starts', () => {
  const packaged = '/usr/lib/rackwright/ramdisk/vmlinuz';
  expect(() => parseWholeConfig(settings('arm64', packaged))).toThrow(
    `runner.architecture has to be amd64 with ${packaged}; those for arm64 are of the package`,
  );
  expect(() => parseWholeConfig(settings('amd64', packaged))).not.toThrow();
  for (const path of ['/srv/vmlinuz', '/usr/lib/rackwright/ramdisk-arm64/vmlinuz']) {
    expect(() => parseWholeConfig(settings('arm64', path))).not.toThrow();
  }
});

function settings(architecture: string, kernelPath: string): string {
  const files = [
    { name: 'vmlinuz', path: kernelPath },
    { name: 'initrd', path: '/srv/initrd' },
  ];
  return JSON.stringify({ serverAddress: '10.0.0.3', files, runner: { architecture } });
}
