import { asMac } from '@rackwright/dhcp';
import { expect, test } from 'vitest';
import { bootUrls, loaderPath, parseLoaderPath, parseTarget, parseTftpName } from './urls.ts';

const mac = asMac('52:54:00:77:00:01');

test('a URL that the agent makes reads back as the same', () => {
  const urls = bootUrls('10.77.0.1', 8080);
  const script = new URL(urls.script(mac));
  expect(script.origin).toBe('http://10.77.0.1:8080');
  expect(parseTarget(script.pathname)).toEqual({ kind: 'script', mac, language: 'ipxe' });
  const file = new URL(urls.hostFile(mac, 'vmlinuz'));
  expect(parseTarget(file.pathname)).toEqual({ kind: 'hostFile', mac, name: 'vmlinuz' });
  expect(bootUrls('10.77.0.1', 80).script(mac)).toMatch(/^http:\/\/10\.77\.0\.1\/boot\//);
});

test('a TFTP name that the agent makes reads back, and so does one without a host', () => {
  expect(parseLoaderPath(loaderPath(mac, 'snponly.efi'))).toEqual({ mac, name: 'snponly.efi' });
  expect(parseLoaderPath(`/${loaderPath(mac, 'a')}`)).toEqual({ mac, name: 'a' });
  expect(parseLoaderPath(`//${loaderPath(mac, 'a')}`)).toEqual({ mac, name: 'a' });
  expect(parseLoaderPath(`/${loaderPath(mac, '/a')}`)).toEqual({ mac, name: 'a' });
  expect(parseLoaderPath('//a')).toEqual({ mac: undefined, name: 'a' });
  expect(parseLoaderPath('snponly.efi')).toEqual({ mac: undefined, name: 'snponly.efi' });
  expect(parseLoaderPath('../etc/passwd')).toEqual({ mac: undefined, name: '../etc/passwd' });
});

test.each([
  ['/files/initrd', { kind: 'file', name: 'initrd' }],
  ['/files/initrd?x=1', { kind: 'file', name: 'initrd' }],
  ['/boot/52:54:00:77:00:01/script.ipxe', { kind: 'script', mac, language: 'ipxe' }],
  ['/v2/blobs/sha256/00', { kind: 'blob', hex: '00' }],
  ['/v2/blobs/sha256/../x', { kind: 'nothing' }],
  ['/v2/blobs/sha512/00', { kind: 'nothing' }],
  ['/v2/blobs/sha256', { kind: 'nothing' }],
  ['/files/../../etc/passwd', { kind: 'nothing' }],
  ['/files/a/b', { kind: 'nothing' }],
  ['/files', { kind: 'nothing' }],
  ['/', { kind: 'nothing' }],
  ['/boot/52-54-00-77-00-01', { kind: 'nothing' }],
  ['/boot/52-54-00-77-00-01/files', { kind: 'nothing' }],
  ['/boot/52-54-00-77-00-01/other', { kind: 'nothing' }],
  ['/boot/everyone/script.ipxe', { kind: 'malformed' }],
  ['http://elsewhere/files/initrd', { kind: 'malformed' }],
  ['*', { kind: 'malformed' }],
  ['', { kind: 'malformed' }],
])('the URL %j is taken apart', (target, parsed) => {
  expect(parseTarget(target)).toEqual(parsed);
});

const uBootHost = { kind: 'script', mac, language: 'uBoot' };

test.each([
  ['boot.scr.uimg', { kind: 'uBootStart' }],
  ['/boot.scr.uimg', { kind: 'uBootStart' }],
  ['pxelinux.cfg/01-52-54-00-77-00-01', uBootHost],
  ['/pxelinux.cfg/01-52-54-00-77-00-01', uBootHost],
  ['pxelinux.cfg/01-52-54-00-77-00-0A', { ...uBootHost, mac: '52:54:00:77:00:0a' }],
])('the TFTP name %j of U-Boot is taken apart', (name, parsed) => {
  expect(parseTftpName(name)).toEqual(parsed);
});

test.each([
  'pxelinux.cfg/6f1b2c3d-4e5f-4a6b-8c7d-000000000001',
  'pxelinux.cfg/0A4D0064',
  'pxelinux.cfg/default-arm',
  'pxelinux.cfg/default',
  'pxelinux.cfg/06-52-54-00-77-00-01',
  'pxelinux.cfg/01-52-54-00-77-00',
  'pxelinux.cfg/01-52-54-00-77-00-01/../x',
  'pxelinux.cfg/../boot.scr.uimg',
  'x/boot.scr.uimg',
])('the TFTP name %j names no script', (name) => {
  expect(parseTftpName(name)).toEqual({ kind: 'loader', mac: undefined, name });
});
