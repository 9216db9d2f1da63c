/**
 * Hostile names, sent as bytes to the real servers: no client normalises the path. A secret is
 * beside the served files, under a name that is easy to guess.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodePacket } from '@rackwright/tftp';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Mailbox, openMailbox } from './test-clients.ts';
import { type BootRig, grantedMac, startRig } from './test-rig.ts';

const secret = 'the secret that lies beside the files';
const loader = 'a loader that anybody may have';
let folder: string;
let rig: BootRig;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'rackwright-names-'));
  writeFileSync(join(folder, 'identity.json'), secret);
  writeFileSync(join(folder, 'loader.efi'), loader);
  writeFileSync(join(folder, 'kernel'), 'a kernel');
  const named = (name: string) => ({ name, path: join(folder, name) });
  rig = await startRig({
    config: {
      loaders: { bios: 'loader.efi', uefiX64: 'loader.efi' },
      loaderFiles: [named('loader.efi')],
      files: [named('kernel')],
      runner: {
        kernel: 'kernel',
        initrd: 'kernel',
        agentPort: 7443,
        fingerprint: 'ab'.repeat(32),
        kernelArguments: [],
      },
    },
  });
});

afterAll(async () => {
  await rig.close();
  rmSync(folder, { recursive: true });
});

/** All that comes back to these bytes, until the server hangs up. */
function exchange(request: string): Promise<string> {
  return new Promise((resolve) => {
    const parts: Buffer[] = [];
    const socket = connect(rig.services.httpPort, '127.0.0.1', () => {
      socket.write(Buffer.from(request, 'latin1'));
    });
    socket.on('data', (part) => parts.push(part));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(Buffer.concat(parts).toString('latin1')));
  });
}

const get = (target: string): Promise<string> =>
  exchange(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);

const ups = (dots: string, slash: string): string => `${dots}${slash}`.repeat(8);

describe('by HTTP', () => {
  const granted = `/boot/${grantedMac}/files`;
  const targets: readonly (readonly [string, string])[] = [
    ['goes up', '/files/../identity.json'],
    ['goes up to the root', `/files/${ups('..', '/')}etc/passwd`],
    ['goes up in percent signs', `/files/${ups('%2e%2e', '%2f')}etc%2fpasswd`],
    ['goes up in percent signs twice', `/files/${ups('%252e%252e', '%252f')}etc%252fpasswd`],
    ['goes up by overlong UTF-8', `/files/${ups('%c0%ae%c0%ae', '%c0%af')}etc/passwd`],
    ['goes up by backslashes', `/files/${ups('..', '\\')}etc\\passwd`],
    ['goes up from the files of a boot', `${granted}/../../../identity.json`],
    ['goes up from a boot', `/boot/../files/../identity.json`],
    ['goes up behind a file that is there', '/files/kernel/../identity.json'],
    ['lies beside the files', '/files/identity.json'],
    ['lies beside the files of a boot', `${granted}/identity.json`],
    ['is absolute', '/etc/passwd'],
    ['is absolute twice', '//etc/passwd'],
    ['is absolute within', '/files//etc/passwd'],
    ['is a URL of a file', 'file:///etc/passwd'],
    ['is a URL of another server', 'http://192.0.2.1/files/kernel'],
    ['is a URL of another server by IPv6', 'http://[2001:db8::1]/files/kernel'],
    ['is a URL with a user', 'http://127.0.0.1@192.0.2.1/files/kernel'],
    ['is a URL of ours that goes up', 'http://127.0.0.1/files/../identity.json'],
    ['is a URL without a host', 'http:///files/kernel'],
    ['holds a NUL in percent signs', '/files/kernel%00.efi'],
    ['holds a NUL', '/files/kernel\0'],
    ['holds a line end in percent signs', '/files/kernel%0d%0aX-Injected:%201'],
    ['is of every object', '/files/__proto__'],
    ['is a property of every object', '/files/constructor'],
    ['is nothing', '/files/'],
    ['is a blob that goes up', '/v2/blobs/sha256/../../../identity.json'],
    ['is a blob that is no digest', '/v2/blobs/sha256/..%2f..%2fidentity.json'],
    ['is a part of a blob', `/v2/blobs/sha256/${'a'.repeat(64)}.part`],
    ['is over-long', `/files/${'../'.repeat(400)}etc/passwd`],
    ['is longer than any header may be', `/files/${'a'.repeat(40_000)}`],
  ];

  test.each(targets)('a name that %s gets nothing', async (_what, target) => {
    const answer = await get(target);
    const [head = '', body] = answer.split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(head).not.toMatch(/x-injected/i);
    expect(body ?? '').toBe('');
  });

  test('any method but GET and HEAD gets nothing', async () => {
    for (const method of ['PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND', 'PATCH', 'CONNECT']) {
      const answer = await exchange(
        `${method} /files/kernel HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
      );
      expect(answer, method).not.toContain('a kernel');
      expect(answer, method).not.toMatch(/^HTTP\/1\.1 [23]/);
    }
  });

  test('a listed file is served by its name', async () => {
    expect(await get('/files/kernel')).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\na kernel$/);
    expect(await get(`${granted}/kernel?x=../`)).toContain('a kernel');
    for (const root of [
      'http://127.0.0.1',
      `HTTP://127.0.0.1:${rig.services.httpPort}`,
      'http://agent',
    ]) {
      expect(await get(`${root}/files/kernel`), root).toContain('a kernel');
      expect(await get(`${root}${granted}/kernel`), root).toContain('a kernel');
    }
  });
});

const readOpcode = 1;
const writeOpcode = 2;

function request(opcode: number, name: string, mode = 'octet'): Uint8Array {
  return Buffer.from(`\0${String.fromCharCode(opcode)}${name}\0${mode}\0`, 'latin1');
}

/** What a request brings first; undefined: nothing. */
async function firstAnswer(mailbox: Mailbox, datagram: Uint8Array) {
  mailbox.send(datagram, rig.services.tftpPort);
  const answer = await mailbox.next(300);
  return answer === undefined ? undefined : decodePacket(answer.datagram);
}

describe('by TFTP', () => {
  const mac = grantedMac.replaceAll(':', '-');
  const names: readonly (readonly [string, string])[] = [
    ['goes up', '../identity.json'],
    ['goes up to the root', `${ups('..', '/')}etc/passwd`],
    ['goes up by backslashes', `${ups('..', '\\')}etc\\passwd`],
    ['goes up in percent signs', `${ups('%2e%2e', '%2f')}etc%2fpasswd`],
    ['goes up from a host', `${mac}/../identity.json`],
    ['lies beside the loaders', 'identity.json'],
    ['lies beside the loaders of a host', `${mac}/identity.json`],
    ['is absolute', '/etc/passwd'],
    ['is absolute twice', '//etc/passwd'],
    ['is absolute behind a host', `${mac}//etc/passwd`],
    ['is a kernel, which only HTTP serves', 'kernel'],
    ['is nothing', ''],
    ['is of every object', '__proto__'],
    ['goes up from the configurations of U-Boot', 'pxelinux.cfg/../identity.json'],
    ['goes up behind a configuration', `pxelinux.cfg/01-${mac}/../../identity.json`],
    ['is a configuration of no MAC', 'pxelinux.cfg/01-..-..-identity.json'],
    ['is a configuration of every host', 'pxelinux.cfg/default'],
    ['is over-long', '../'.repeat(160)],
  ];

  test.each(names)('a name that %s gets no block', async (_what, name) => {
    const mailbox = await openMailbox();
    for (const mode of ['octet', 'netascii', 'mail']) {
      const packet = await firstAnswer(mailbox, request(readOpcode, name, mode));
      expect(packet?.kind ?? 'error', mode).toBe('error');
    }
    mailbox.close();
  });

  test('a name ends at a NUL, whatever stands behind it', async () => {
    const mailbox = await openMailbox();
    const name = 'loader.efi\0../../identity.json';
    const packet = await firstAnswer(mailbox, request(readOpcode, name));
    // The word behind the name is the mode, and this mode does not exist.
    expect(packet?.kind ?? 'error').toBe('error');
    mailbox.close();
  });

  test('no file is written', async () => {
    const mailbox = await openMailbox();
    const packet = await firstAnswer(mailbox, request(writeOpcode, 'loader.efi'));
    expect(packet?.kind).toBe('error');
    mailbox.close();
  });

  test('a listed file is served by its name over TFTP', async () => {
    const mailbox = await openMailbox();
    const packet = await firstAnswer(mailbox, request(readOpcode, `${mac}/loader.efi`));
    if (packet?.kind !== 'data') throw new Error(`expected a block, got ${packet?.kind}`);
    expect(Buffer.from(packet.bytes).toString()).toBe(loader);
    mailbox.close();
  });
});
