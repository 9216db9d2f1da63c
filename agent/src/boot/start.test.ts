import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { dhcpOption, readOption } from '@rackwright/dhcp';
import type { Http } from '@rackwright/platform';
import { nodeHttp } from '@rackwright/platform/node';
import { decodePacket, encodePacket, type TftpOption } from '@rackwright/tftp';
import { afterEach, describe, expect, test } from 'vitest';
import { httpLimitsDefault } from './config.ts';
import {
  discover,
  fetchByTftp,
  type Mailbox,
  openMailbox,
  plainDiscover,
  relayedDiscover,
} from './test-clients.ts';
import {
  type BootRig,
  grantedMac,
  knownMac,
  loopbackDhcp,
  startRig,
  unknownMac,
} from './test-rig.ts';

const closers: (() => void | Promise<void>)[] = [];

afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function rigWithMailbox(): Promise<{ rig: BootRig; mailbox: Mailbox; dhcpPort: number }> {
  const mailbox = await openMailbox();
  const rig = await startRig({ relayPort: mailbox.port });
  closers.push(() => mailbox.close(), rig.close);
  const { dhcpPort } = rig.services;
  if (dhcpPort === undefined) throw new Error('DHCP is off');
  return { rig, mailbox, dhcpPort };
}

async function rigOnly(options: Parameters<typeof startRig>[0] = {}): Promise<BootRig> {
  const rig = await startRig(options);
  closers.push(rig.close);
  return rig;
}

function sameBytes(found: Uint8Array, wanted: Uint8Array | undefined): boolean {
  return wanted !== undefined && Buffer.compare(found, wanted) === 0;
}

test('the server boots a granted host from the offer to the last byte of the ramdisk', async () => {
  const { rig, mailbox, dhcpPort } = await rigWithMailbox();
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  expect(offer.bootFile).toBe('52-54-00-77-00-02/snponly.efi');
  const loader = await fetchByTftp(rig.services.tftpPort, offer.bootFile);
  expect(sameBytes(loader, rig.contents['snponly.efi'])).toBe(true);
  const script = await (await fetch(rig.url(`/boot/${grantedMac}/script.ipxe`))).text();
  expect(script).toContain('rackwright.token=token-2');
  for (const [, url = ''] of script.matchAll(/(http:\S+\/files\/\S+)/g)) {
    const name = url.split('/').at(-1) ?? '';
    const bytes = await (await fetch(url)).bytes();
    expect(sameBytes(bytes, rig.contents[name])).toBe(true);
  }
  expect(rig.observed).toMatchObject([
    { mac: grantedMac, hostUid: 'u2', stage: 'dhcp', permitted: true },
    { stage: 'tftp', permitted: true },
    { stage: 'script', permitted: true },
    { stage: 'file', permitted: true },
    { stage: 'file', permitted: true },
  ]);
});

test('addresses are given while HTTP is still being opened', async () => {
  const mailbox = await openMailbox();
  closers.push(() => mailbox.close());
  const free = createSocket('udp4').bind(0, '127.0.0.1');
  await once(free, 'listening');
  const { port } = free.address();
  free.close();
  let offered = '';
  const http: Http = {
    listen: async (options, handle) => {
      offered = (await discover(mailbox, port, relayedDiscover(grantedMac, 7))).bootFile;
      return nodeHttp().listen({ ...options, port: 0 }, handle);
    },
  };
  const dhcp = { ...loopbackDhcp(mailbox.port), port };
  // A port that the system chooses is part of the offers, and has to be known before them.
  await rigOnly({
    http,
    interface: { dhcp },
    config: { http: { address: '127.0.0.1', port: 80 } },
  });
  expect(offered).toBe('52-54-00-77-00-02/snponly.efi');
});

test('the server reports each step of a boot into the runner, and no other boot', async () => {
  const { rig, mailbox, dhcpPort } = await rigWithMailbox();
  mailbox.send(relayedDiscover(knownMac, 7), dhcpPort);
  const offer = await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  await fetchByTftp(rig.services.tftpPort, offer.bootFile);
  for (const mac of [knownMac, grantedMac]) await (await fetch(rig.url(scriptPath(mac)))).text();
  await fetch(rig.url(filePath(grantedMac, 'vmlinuz')), { method: 'HEAD' });
  for (const range of ['bytes=0-99', 'bytes=100-299999']) {
    await (await fetch(rig.url(filePath(grantedMac, 'vmlinuz')), { headers: { range } })).bytes();
  }
  await (await fetch(rig.url(filePath(grantedMac, 'nothing')))).bytes();
  const sent = ({ kind }: { readonly kind: string }) => kind === 'sent';
  await expect.poll(() => rig.bootEvents.filter(sent).length, { timeout: 10_000 }).toBe(3);
  const told = rig.bootEvents.map(({ stage, program, transport, kind, bytes }) =>
    [stage, program, transport, kind, bytes].join(' '),
  );
  const scriptBytes = rig.bootEvents.find(
    ({ stage, kind }) => stage === 'script' && kind === 'sent',
  );
  expect(told.toSorted()).toEqual(
    [
      ...['discover firmware  came 0', 'offer firmware  came 0'],
      ...['loader firmware tftp came 0', 'loader firmware tftp sent 170000'],
      ...['script loader http came 0', `script loader http sent ${scriptBytes?.bytes}`],
      ...['kernel loader http came 0', 'kernel loader http came 0'],
      'kernel loader http sent 299900',
    ].toSorted(),
  );
  expect(rig.bootEvents.every(({ operationId, mac }) => `${operationId} ${mac}` === whose)).toBe(
    true,
  );
});

const whose = `u2/1/1/1 ${grantedMac}`;
const scriptPath = (mac: string) => `/boot/${mac}/script.ipxe`;
const filePath = (mac: string, name: string) => `/boot/${mac}/files/${name}`;

test('the server reports a file that was cut on its way', async () => {
  const rig = await rigOnly({ files: { initrd: 64 * 1024 * 1024 } });
  const ended = new AbortController();
  const asked = await fetch(rig.url(filePath(grantedMac, 'initrd')), { signal: ended.signal });
  await asked.body?.getReader().read();
  ended.abort();
  const last = () => rig.bootEvents.at(-1);
  await expect.poll(last, { timeout: 10_000 }).toMatchObject({ stage: 'initrd', kind: 'failed' });
  expect(last()?.problem).toContain('cut');
});

describe('a host without a grant', () => {
  test('hears nothing as plain PXE firmware, and is observed', async () => {
    const { rig, mailbox, dhcpPort } = await rigWithMailbox();
    mailbox.send(relayedDiscover(knownMac, 7), dhcpPort);
    // The answer to another host proves that this one has been decided on.
    await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
    expect(await mailbox.next(50)).toBeUndefined();
    expect(rig.observed[0]).toMatchObject({ mac: knownMac, hostUid: 'u1', permitted: false });
  });

  test('is heard when its system asks for an address, and hears nothing', async () => {
    const { rig, mailbox, dhcpPort } = await rigWithMailbox();
    mailbox.send(plainDiscover(knownMac), dhcpPort);
    await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
    expect(await mailbox.next(50)).toBeUndefined();
    expect(rig.requests).toEqual(['u1']);
    expect(rig.observed.some(({ mac }) => mac === knownMac)).toBe(false);
  });

  test('is offered a loader by URL as UEFI HTTP firmware, and sent to its disk', async () => {
    const { rig, mailbox, dhcpPort } = await rigWithMailbox();
    const offer = await discover(mailbox, dhcpPort, relayedDiscover(knownMac, 16));
    const url = readOption(offer, dhcpOption.bootFileName) ?? '';
    const loader = await (await fetch(url)).bytes();
    expect(sameBytes(loader, rig.contents['snponly.efi'])).toBe(true);
    const script = await (await fetch(rig.url(`/boot/${knownMac}/script.ipxe`))).text();
    expect(script).toMatch(/exit 1\n$/);
    expect(script).not.toContain('kernel');
    expect(rig.observed.map(({ permitted }) => permitted)).toEqual([false, false, false]);
  });

  test('gets neither kernel nor loader by TFTP', async () => {
    const rig = await rigOnly();
    const kernel = await fetch(rig.url(`/boot/${knownMac}/files/vmlinuz`));
    expect(kernel.status).toBe(403);
    const loader = fetchByTftp(rig.services.tftpPort, '52-54-00-77-00-01/snponly.efi');
    await expect(loader).rejects.toThrow('TFTP error 2: no boot grant');
  });
});

test('an unknown MAC is refused on every path and observed on each', async () => {
  const { rig, mailbox, dhcpPort } = await rigWithMailbox();
  mailbox.send(relayedDiscover(unknownMac, 7), dhcpPort);
  await discover(mailbox, dhcpPort, relayedDiscover(grantedMac, 7));
  expect(await mailbox.next(50)).toBeUndefined();
  expect((await fetch(rig.url(`/boot/${unknownMac}/script.ipxe`))).status).toBe(404);
  expect((await fetch(rig.url(`/boot/${unknownMac}/files/vmlinuz`))).status).toBe(404);
  const loader = fetchByTftp(rig.services.tftpPort, '52-54-00-77-00-99/snponly.efi');
  await expect(loader).rejects.toThrow('TFTP error 1: unknown host');
  const unknown = rig.observed.filter(({ mac }) => mac === unknownMac);
  expect(unknown.map(({ stage, permitted }) => [stage, permitted])).toEqual([
    ['dhcp', false],
    ['script', false],
    ['file', false],
    ['tftp', false],
  ]);
  expect(unknown.every((observation) => !('hostUid' in observation))).toBe(true);
});

test.each([
  ['/files/none', 'GET', 404],
  ['/', 'GET', 404],
  ['/files/..%2f..%2fetc%2fpasswd', 'GET', 404],
  ['/boot/everyone/script.ipxe', 'GET', 400],
  ['/files/vmlinuz', 'POST', 405],
  [`/files/${'x'.repeat(2_000)}`, 'GET', 414],
  [`/files/${'x'.repeat(20_000)}`, 'GET', 431],
])('the server refuses %s by %s at once with %i', async (path, method, status) => {
  const rig = await rigOnly();
  await fetch(rig.url('/files/none')); // The first connection of a process is slow for its client.
  const tooks: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const before = performance.now();
    const response = await fetch(rig.url(path), { method });
    tooks.push(performance.now() - before);
    expect(response.status).toBe(status);
  }
  // The best of five: our own time, without other work of this machine.
  expect(Math.min(...tooks)).toBeLessThan(50);
});

test.each([
  ['none', 'TFTP error 1: no such file'],
  ['../../etc/passwd', 'TFTP error 1: no such file'],
  ['/etc/passwd', 'TFTP error 1: no such file'],
  ['vmlinuz', 'TFTP error 1: no such file'],
])('the server refuses %s by TFTP at once', async (fileName, text) => {
  const rig = await rigOnly();
  const tooks: number[] = [];
  for (let round = 0; round < 5; round += 1) {
    const before = performance.now();
    await expect(fetchByTftp(rig.services.tftpPort, fileName)).rejects.toThrow(text);
    tooks.push(performance.now() - before);
  }
  expect(Math.min(...tooks)).toBeLessThan(50);
});

test('the server serves firmware that was reset and asks again from the same port', async () => {
  const rig = await rigOnly();
  const firmware = await openMailbox();
  closers.push(() => firmware.close());
  const { tftpPort } = rig.services;
  const options: TftpOption[] = [['blksize', '1468']];
  const request = { kind: 'readRequest', fileName: 'snponly.efi', mode: 'octet', options } as const;
  firmware.send(encodePacket(request), tftpPort);
  const first = await firmware.next(10_000);
  const firstPort = first?.from.port ?? 0;
  firmware.send(encodePacket({ kind: 'ack', block: 0 }), firstPort);
  await firmware.next(10_000);
  firmware.send(encodePacket(request), tftpPort);
  const again = await firmware.next(10_000);
  expect(again?.from.port).not.toBe(firstPort);
  expect(decodePacket(again?.datagram ?? new Uint8Array())).toMatchObject({ kind: 'optionAck' });
});

test('the server answers ranges and HEAD, from memory and from disk alike', async () => {
  const rig = await rigOnly();
  for (const name of ['snponly.efi', 'vmlinuz']) {
    const url = rig.url(`/files/${name}`);
    const whole = rig.contents[name] ?? new Uint8Array();
    const part = await fetch(url, { headers: { range: 'bytes=1000-1999' } });
    expect(part.status).toBe(206);
    expect(part.headers.get('content-range')).toBe(`bytes 1000-1999/${whole.length}`);
    expect(sameBytes(await part.bytes(), whole.subarray(1_000, 2_000))).toBe(true);
    const beyond = await fetch(url, { headers: { range: `bytes=${whole.length}-` } });
    expect(beyond.status).toBe(416);
    expect(beyond.headers.get('content-range')).toBe(`bytes */${whole.length}`);
    const head = await fetch(url, { method: 'HEAD' });
    expect(head.headers.get('content-length')).toBe(String(whole.length));
    const changed = { range: 'bytes=0-9', 'if-range': '"etag"' };
    expect((await fetch(url, { headers: changed })).status).toBe(200);
  }
});

test('an answer names the file’s version; a client with this version gets no body', async () => {
  const rig = await rigOnly();
  for (const name of ['snponly.efi', 'vmlinuz']) {
    const url = rig.url(`/files/${name}`);
    const etag = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? '';
    expect(etag).toMatch(/^"[0-9a-f-]+"$/);
    for (const known of [etag, `"other", ${etag}`, `W/${etag}`, '*']) {
      const same = await fetch(url, { headers: { 'if-none-match': known } });
      expect([same.status, same.headers.get('etag'), await same.text()]).toEqual([304, etag, '']);
    }
    const other = await fetch(url, { headers: { 'if-none-match': '"other"' } });
    expect([other.status, (await other.bytes()).length]).toEqual([200, rig.contents[name]?.length]);
    const resumed = await fetch(url, { headers: { range: 'bytes=5-9', 'if-range': etag } });
    expect([resumed.status, (await resumed.bytes()).length]).toEqual([206, 5]);
    const weak = await fetch(url, { headers: { range: 'bytes=5-9', 'if-range': `W/${etag}` } });
    expect(weak.status).toBe(200);
  }
});

test.each([
  ['as large', 0],
  ['larger', 1_000],
  ['smaller', -1_000],
])(
  'a file that was replaced by one that is %s is sent whole, as another version',
  async (...by) => {
    const [, more] = by;
    const rig = await rigOnly();
    const url = rig.url('/files/vmlinuz');
    const before = (await fetch(url, { method: 'HEAD' })).headers.get('etag') ?? '';
    const old = rig.contents['vmlinuz'] ?? new Uint8Array();
    const bytes = Uint8Array.from({ length: old.length + more }, (_, at) => (old[at] ?? 0) ^ 1);
    await writeFile(join(rig.folder, 'vmlinuz'), bytes);
    const now = await fetch(url, { headers: { 'if-none-match': before } });
    expect(now.status).toBe(200);
    expect(now.headers.get('etag')).not.toBe(before);
    expect(sameBytes(await now.bytes(), bytes)).toBe(true);
  },
);

test('the server serves an empty file', async () => {
  const rig = await rigOnly({ loaders: { nothing: 0 }, files: { void: 0 } });
  for (const name of ['nothing', 'void']) {
    const response = await fetch(rig.url(`/files/${name}`));
    expect([response.status, (await response.bytes()).length]).toEqual([200, 0]);
  }
  expect(await fetchByTftp(rig.services.tftpPort, 'nothing')).toHaveLength(0);
});

test('the health check is answered without a log line', async () => {
  const rig = await rigOnly();
  const before = rig.lines.length;
  expect((await fetch(rig.url('/'), { method: 'HEAD' })).status).toBe(204);
  expect(rig.lines).toHaveLength(before);
});

test('the server reports that it is well while others hold all its HTTP connections', async () => {
  const rig = await rigOnly();
  const before = rig.lines.length;
  const { connectionsMax, connectionsPerAddressMax } = httpLimitsDefault;
  const sockets: Socket[] = [];
  let isCut = 0;
  const hold = async (localAddress: string): Promise<void> => {
    const to = { host: '127.0.0.1', port: rig.services.httpPort, localAddress };
    const socket = connect(to).on('error', () => {});
    socket.once('close', () => {
      isCut += 1;
    });
    sockets.push(socket);
    await new Promise((resolve) => socket.once('connect', resolve));
  };
  for (let from = 0; from * connectionsPerAddressMax < connectionsMax; from += 1) {
    const all = Array.from({ length: connectionsPerAddressMax }, () => hold(`127.0.9.${from + 1}`));
    await Promise.all(all);
  }
  expect(isCut).toBe(0);
  await hold('127.0.9.99');
  await expect.poll(() => isCut, { timeout: 60_000 }).toBe(1);
  expect(await rig.services.problem(60_000)).toBeUndefined();
  expect(rig.lines).toHaveLength(before);
  for (const socket of sockets) socket.destroy();
});

test('a server on all addresses sends files from the one that clients were told', async () => {
  const rig = await rigOnly({
    interface: { serverAddress: '127.0.0.2' },
    config: { tftp: { address: '0.0.0.0', port: 0 } },
  });
  const client = createSocket('udp4');
  try {
    const answered = once(client, 'message');
    client.send('\0\u0001undionly.kpxe\0octet\0', rig.services.tftpPort, '127.0.0.2');
    const [, from] = (await answered) as [Buffer, { readonly address: string }];
    expect(from.address).toBe('127.0.0.2');
  } finally {
    client.close();
  }
});

test('the log has few lines on many strangers, and says how many were left out', async () => {
  const rig = await rigOnly();
  for (let round = 0; round < 200; round += 1) await fetch(rig.url('/files/none'));
  const refusals = rig.lines.filter((line) => line.startsWith('HTTP request refused'));
  expect(refusals).toHaveLength(30);
});

test('the server does not start without a file that it serves, and opens no port', async () => {
  const taken = await rigOnly();
  const missing = [{ name: 'gone', path: '/nonexistent/gone' }];
  const loaders = { bios: 'gone' };
  await expect(startRig({ config: { loaderFiles: missing, loaders } })).rejects.toThrow(
    'boot file gone is missing at /nonexistent/gone',
  );
  const tftp = { address: '127.0.0.1', port: taken.services.tftpPort };
  const http = { address: '127.0.0.1', port: 0 };
  await expect(startRig({ config: { tftp, http } })).rejects.toThrow('EADDRINUSE');
});

test('a loader larger than the memory limit is not read', async () => {
  await expect(startRig({ config: { loaderBytesMax: 100_000 } })).rejects.toThrow(
    'boot loaders up to snponly.efi have 240000 bytes, limit 100000',
  );
});
