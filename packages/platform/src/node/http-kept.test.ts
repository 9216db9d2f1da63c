/** Files that the server has in memory: sent at once, and given back whatever their client does. */
import { once } from 'node:events';
import { mkdtemp, rename, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpServer } from '../http.ts';
import { versionOf } from './file-version.ts';
import { nodeHttp } from './on-demand.ts';

const mebibyte = 1024 * 1024;
/** No socket takes it whole, and the memory for kept files has room for one. */
const fileBytes = 17 * mebibyte;
const from = '127.0.7.1';
const content = Buffer.alloc(fileBytes, 'one');
for (let at = 0; at < fileBytes; at += mebibyte) content.writeUInt32BE(at, at);

let folder: string;
let server: HttpServer;
let asked: string[];
/** Called with each target before it is answered. */
let before: (target: string) => Promise<void> | undefined;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-http-kept-'));
  [asked, before] = [[], () => undefined];
  const versions = new Map<string, string>();
  for (const name of ['one', 'two']) {
    const path = join(folder, name);
    await writeFile(path, name === 'one' ? content : '');
    await truncate(path, fileBytes);
    versions.set(`/${name}`, versionOf(await stat(path, { bigint: true })));
  }
  server = await nodeHttp().listen(
    {
      ...{ address: '127.0.0.1', port: 0, headerBytesMax: 4_096, idleTimeoutMs: 60_000 },
      ...{ connectionsMax: 32, connectionsPerAddressMax: 1, keptFileBytesMax: fileBytes },
    },
    async ({ target, headers }) => {
      asked.push(target);
      await before(target);
      const version = versions.get(target);
      if (version === undefined) return { status: 204, headers: {} };
      const [start = 0, end = fileBytes - 1] = headers['x-part']?.split('-').map(Number) ?? [];
      const body = { kind: 'file', path: join(folder, target), start, end, version } as const;
      return { status: 200, headers: {}, body };
    },
  );
});

afterEach(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

/** The status and the body; a connection for each, as an address may have one. */
async function get(target: string, headers = '') {
  const socket = connect({ port: server.port, host: server.address });
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${headers}\r\n`);
  const parts: Buffer[] = [];
  for await (const part of socket) parts.push(part as Buffer);
  const whole = Buffer.concat(parts);
  const end = whole.indexOf('\r\n\r\n');
  return { status: whole.toString('latin1', 9, 12), body: whole.subarray(end + 4) };
}

test('a file comes the same from the disk and from memory, whole and in parts', async () => {
  const [first, again] = [await get('/one'), await get('/one')];
  await rm(join(folder, 'one'));
  const last = await get('/one');
  for (const { status, body } of [first, again, last]) {
    expect([status, body.equals(content)]).toEqual(['200', true]);
  }
  const border = 8 * mebibyte;
  for (const [start, end] of [
    [border - 9, border + 9],
    [border, border],
    [5, fileBytes - 1],
  ] as const) {
    const { body } = await get('/one', `X-Part: ${start}-${end}\r\n`);
    expect(body.equals(content.subarray(start, end + 1))).toBe(true);
  }
});

/** Whether the memory can be used for another file. */
async function isGivenBack(): Promise<boolean> {
  await get('/two');
  const [path, elsewhere] = [join(folder, 'two'), join(folder, 'elsewhere')];
  await rename(path, elsewhere);
  const { status } = await get('/two');
  await rename(elsewhere, path);
  return status === '200';
}

/** A connection that asks for a file and reads nothing. */
async function askAndReadNothing(target: string) {
  const options = { port: server.port, host: server.address, localAddress: from };
  const socket = connect(options).pause();
  socket.on('error', () => undefined);
  socket.write(`GET ${target} HTTP/1.1\r\nHost: x\r\n\r\n`);
  await expect.poll(() => asked).toContain(target);
  asked = [];
  return socket;
}

/** Resolves when the server has noticed that this address has no connection any more. */
async function gone(): Promise<void> {
  const heardAgain = async (): Promise<string> => {
    const socket = connect({ port: server.port, host: server.address, localAddress: from });
    socket.on('error', () => undefined);
    socket.write('GET /other HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    let heard = '';
    socket.on('data', (part) => {
      heard += part.toString('latin1');
    });
    await once(socket, 'close');
    return heard;
  };
  await expect.poll(heardAgain, { timeout: 60_000 }).toMatch(/^HTTP\/1\.1 204/);
}

test('a file is given back when its client goes while it is sent', async () => {
  await get('/one');
  const socket = await askAndReadNothing('/one');
  expect(await isGivenBack()).toBe(false);
  socket.resetAndDestroy();
  await gone();
  expect(await isGivenBack()).toBe(true);
});

test('a file is not lent to a client that went before its answer', async () => {
  await get('/one');
  const answered = Promise.withResolvers<void>();
  before = (target) => (target === '/one' ? answered.promise : undefined);
  const socket = await askAndReadNothing('/one');
  socket.resetAndDestroy();
  await gone();
  answered.resolve();
  expect(await isGivenBack()).toBe(true);
});

test('a header that is named like a property of every object is a header like others', async () => {
  const heard = await get('/other', '__proto__: x\r\nConstructor: y\r\n');
  expect(heard.status).toBe('204');
});
