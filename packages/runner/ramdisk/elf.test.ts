import { expect, test } from 'vitest';
import { busyboxApplets, neededLibraries } from './elf.ts';

const program = (list: string): Uint8Array => Buffer.from(`\x7fELF code\0text\0${list}\0more`);

test('the commands of busybox are read from its list of names, without its own', () => {
  const list = '[\0[[\0busybox\0modprobe\0sh\0start-stop-daemon\0udhcpc\0';
  const names = ['[', '[[', 'modprobe', 'sh', 'start-stop-daemon', 'udhcpc'];
  expect(busyboxApplets(program(list))).toEqual(names);
});

test.each([
  ['a program without a list', 'no names\0'],
  ['a list without the shell', '[\0[[\0modprobe\0udhcpc\0'],
  ['a list whose end is missing', '[\0[[\0sh'],
])('%s is refused', (_, list) => {
  expect(() => busyboxApplets(program(list))).toThrow('has no list of its commands');
});

test('a name that is no file name of a command is refused', () => {
  const list = '[\0[[\0a/b\0modprobe\0sh\0udhcpc\0';
  expect(() => busyboxApplets(program(list))).toThrow('busybox names a command "a/b"');
});

test('each library that programs ask for is named once', () => {
  const text = `
File: one
 0x0000000000000001 (NEEDED)             Shared library: [libdl.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
 0x000000000000000e (SONAME)             Library soname: [libone.so.1]
File: two
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
`;
  expect(neededLibraries(text)).toEqual(['libdl.so.2', 'libc.so.6']);
});
