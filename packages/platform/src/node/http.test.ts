import { once } from 'node:events';
import { mkdtemp, readdir, readlink, rm, truncate, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpListen, HttpRequest, HttpResponse, HttpServer } from '../http.ts';
import { nodeHttp } from './on-demand.ts';

let folder: string;
const servers: HttpServer[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'rackwright-http-'));
});

afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => server.close()));
  await rm(folder, { recursive: true });
});

async function serve(
  handle: (request: HttpRequest) => HttpResponse | Promise<HttpResponse>,
  limits: Partial<HttpListen> = {},
): Promise<HttpServer> {
  const server = await nodeHttp().listen(
    {
      address: '127.0.0.1',
      port: 0,
      headerBytesMax: 4_096,
      connectionsMax: 32,
      connectionsPerAddressMax: 32,
      connectionsPerHostMax: 32,
      keptFileBytesMax: 1024 * 1024,
      idleTimeoutMs: 20_000,
      ...limits,
    },
    handle,
  );
  servers.push(server);
  return server;
}

/** Everything that the server says to these bytes until it closes the connection. */
function exchange(server: HttpServer, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = '';
    const socket = connect(server.port, server.address, () => socket.write(bytes));
    socket.setEncoding('latin1');
    socket.on('data', (part: string) => {
      heard += part;
    });
    socket.on('error', reject);
    socket.on('close', () => resolve(heard));
  });
}

function get(server: HttpServer, path = '/'): Promise<Response> {
  return fetch(`http://127.0.0.1:${server.port}${path}`);
}

test('the server hands over method, target, headers and the address of the client', async () => {
  const seen: HttpRequest[] = [];
  const server = await serve((request) => {
    seen.push(request);
    return { status: 200, headers: {}, body: 'ok' };
  });
  const request = 'GET /a%2e?b HTTP/1.1\r\nHost: x\r\nX-Two: 1\r\nX-Two: 2\r\nConnection: close';
  expect(await exchange(server, `${request}\r\n\r\n`)).toContain('Content-Length: 2'.toLowerCase());
  expect(seen).toMatchObject([
    {
      method: 'GET',
      target: '/a%2e?b',
      remoteAddress: '127.0.0.1',
      localAddress: '127.0.0.1',
      headers: { 'x-two': '1, 2' },
    },
  ]);
});

test('the server answers two requests on one connection', async () => {
  const server = await serve(({ target }) => ({ status: 200, headers: {}, body: target }));
  const first = 'GET /one HTTP/1.1\r\nHost: x\r\n\r\n';
  const second = 'GET /two HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n';
  const heard = await exchange(server, first + second);
  expect(heard.match(/HTTP\/1\.1 200/g)).toHaveLength(2);
  expect(heard.indexOf('/one')).toBeLessThan(heard.indexOf('/two'));
});

test('a server streams a slice of a file, and for HEAD only its length', async () => {
  const path = join(folder, 'kernel');
  await writeFile(path, 'abcdefghij');
  const body = { kind: 'file', path, start: 2, end: 5 } as const;
  const server = await serve(() => ({ status: 206, headers: {}, body }));
  expect(await (await get(server)).text()).toBe('cdef');
  const heard = await exchange(server, 'HEAD / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  expect(heard).toContain('content-length: 4');
  expect(heard.endsWith('\r\n\r\n')).toBe(true);
});

/** How often this process has the file open. */
async function timesOpen(path: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd');
  const targets = descriptors.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => ''));
  return (await Promise.all(targets)).filter((target) => target === path).length;
}

/** Asks so often in one write, and reads nothing until it is resumed. */
function pipeline(server: HttpServer, requests: number) {
  const socket = connect(server.port, server.address).pause();
  let bytes = 0;
  socket.on('data', (part) => {
    bytes += part.length;
  });
  socket.on('error', () => undefined);
  const closed = new Promise<number>((resolve) => socket.once('close', () => resolve(bytes)));
  const each = 'GET /kernel HTTP/1.1\r\nHost: x\r\n\r\n';
  socket.write(
    each.repeat(requests - 1) + each.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n'),
  );
  return { socket, closed };
}

test('the server answers all requests of one write, in their order, however many', async () => {
  const server = await serve(({ target }) => ({ status: 200, headers: {}, body: `${target};` }));
  const requests = Array.from({ length: 5_000 }, (_, at) => {
    const close = at === 4_999 ? 'Connection: close\r\n' : '';
    return `GET /${at} HTTP/1.1\r\nHost: x\r\n${close}\r\n`;
  });
  const heard = await exchange(server, requests.join(''));
  const answered = [...heard.matchAll(/\/(\d+);/g)].map(([, at]) => Number(at));
  expect(answered).toEqual(Array.from({ length: 5_000 }, (_, at) => at));
});

test('a client that does not read answers is not read further until it reads them', async () => {
  let asked = 0;
  const server = await serve(() => {
    asked += 1;
    return { status: 200, headers: {}, body: 'x'.repeat(4_096) };
  });
  const pad = `X-Pad: ${'p'.repeat(3_000)}\r\n`;
  const each = `GET /a HTTP/1.1\r\nHost: x\r\n${pad}\r\n`;
  const socket = connect(server.port, server.address).pause();
  const last = each.replace('\r\n', '\r\nConnection: close\r\n');
  socket.write(each.repeat(9_999) + last);
  // 30 MB of requests, of which the kernel keeps some; of its answers the client has read none.
  await expect.poll(() => asked).toBeGreaterThan(0);
  await get(server, '/other');
  expect(socket.writableLength).toBeGreaterThan(0);
  let answers = 0;
  socket.setEncoding('latin1');
  socket.on('data', (part: string) => {
    answers += part.split('HTTP/1.1 200').length - 1;
  });
  socket.resume();
  await once(socket, 'close');
  expect(asked).toBe(10_001);
  expect(answers).toBeGreaterThan(9_900);
});

/** A file that no socket takes whole, and its server. */
async function serveLarge(limits: Partial<HttpListen> = {}) {
  const path = join(folder, 'large');
  const sizeBytes = 16 * 1024 * 1024;
  await writeFile(path, '');
  await truncate(path, sizeBytes);
  const asked: string[] = [];
  const server = await serve(({ target }) => {
    asked.push(target);
    return { status: 200, headers: {}, body: { kind: 'file', path, start: 0, end: sizeBytes - 1 } };
  }, limits);
  return { path, sizeBytes, asked, server };
}

test('the files of one connection are opened one by one, however many it asks for', async () => {
  const { path, sizeBytes, asked, server } = await serveLarge();
  const { socket, closed } = pipeline(server, 4);
  await expect.poll(() => timesOpen(path)).toBe(1);
  // All other requests have been read by then.
  expect((await get(server, '/other')).status).toBe(200);
  expect(asked).toEqual(['/kernel', '/other']);
  socket.resume();
  expect(await closed).toBeGreaterThan(4 * sizeBytes);
  expect(asked.filter((target) => target === '/kernel')).toHaveLength(4);
});

test('the server says 404 for a file that is gone', async () => {
  const body = { kind: 'file', path: join(folder, 'gone'), start: 0, end: 5 } as const;
  const server = await serve(() => ({ status: 200, headers: {}, body }));
  expect((await get(server)).status).toBe(404);
});

test('the server breaks the connection when a file is shorter than was promised', async () => {
  const path = join(folder, 'initrd');
  await writeFile(path, new Uint8Array(300_000));
  const server = await serve(() => ({
    status: 200,
    headers: {},
    body: { kind: 'file', path, start: 0, end: 299_999 },
  }));
  await truncate(path, 100_000);
  await expect(get(server).then((response) => response.arrayBuffer())).rejects.toThrow();
});

test.each([
  ['what is no HTTP', 'hello\r\n\r\n', 400],
  ['headers above the limit', `GET /${'x'.repeat(5_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 431],
  ['CONNECT', 'CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n', 405],
])('the server refuses %s', async (_name, bytes, status) => {
  const server = await serve(() => ({ status: 200, headers: {} }));
  expect(await exchange(server, bytes)).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});

test('the server closes a connection that sends a body, without reading it', async () => {
  const server = await serve(({ method }) => ({ status: 405, headers: {}, body: method }));
  const heard = await exchange(
    server,
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\nab',
  );
  expect(heard).toMatch(/^HTTP\/1\.1 405 /);
});

test('the server closes a connection that is silent for too long', async () => {
  const server = await serve(() => ({ status: 200, headers: {} }), { idleTimeoutMs: 200 });
  const patient = await serve(() => ({ status: 200, headers: {} }), { idleTimeoutMs: 60_000 });
  const older = ['', 'GET / HT'].map((bytes) => exchange(patient, bytes).then(() => 'older'));
  for (const bytes of ['', 'GET / HT']) {
    const silent = exchange(server, bytes).then((heard) => {
      expect(heard).not.toContain('200');
      return 'silent';
    });
    expect(await Promise.race([silent, ...older])).toBe('silent');
  }
  await servers.pop()?.close();
  expect(await Promise.all(older)).toHaveLength(2);
});

test('connections above the limit are refused until one has gone', async () => {
  const server = await serve(() => ({ status: 200, headers: {} }), { connectionsMax: 1 });
  const holder = connect(server.port, server.address);
  await new Promise((resolve) => holder.once('connect', resolve));
  const refused = await exchange(server, 'GET / HTTP/1.1\r\nHost: x\r\n\r\n').catch(() => '');
  expect(refused).toBe('');
  holder.destroy();
  const answered = async () =>
    exchange(server, 'GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n').catch(() => '');
  await expect.poll(answered, { timeout: 60_000 }).toMatch(/^HTTP\/1\.1 200/);
});

/** A silent connection from an address of its own, and whether it was cut. */
async function hold(server: HttpServer, localAddress: string) {
  const socket = connect({ port: server.port, host: server.address, localAddress });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => undefined);
  await new Promise((resolve) => socket.once('connect', resolve));
  return { socket, closed };
}

test('connections of one address above its limit are refused, and others are served', async () => {
  const server = await serve(() => ({ status: 200, headers: {} }), { connectionsPerAddressMax: 2 });
  const held = [await hold(server, '127.0.7.1'), await hold(server, '127.0.7.1')];
  const third = await hold(server, '127.0.7.1');
  await third.closed;
  // It was refused: older ones that are as silent are still there.
  expect(held.map(({ socket }) => socket.destroyed)).toEqual([false, false]);
  expect((await get(server)).status).toBe(200);
  held[0]?.socket.destroy();
  await held[0]?.closed;
  await expect
    .poll(
      async () => {
        const again = await hold(server, '127.0.7.1');
        again.socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
        const heard = new Promise((resolve) => again.socket.once('data', () => resolve(true)));
        return await Promise.race([heard, again.closed.then(() => false)]);
      },
      { timeout: 60_000 },
    )
    .toBe(true);
  held[1]?.socket.destroy();
});

test('connections of a host above its limit are refused, whatever others have', async () => {
  const hostOf = (target: string) => /^\/host\/(\w+)$/.exec(target)?.[1];
  const server = await serve(() => ({ status: 204, headers: {} }), {
    connectionsPerAddressMax: 2,
    connectionsPerHostMax: 2,
    hostOf,
  });
  const ask = async (host: string) => {
    const { socket, closed } = await hold(server, '127.0.7.1');
    socket.write(`GET /host/${host} HTTP/1.1\r\nHost: x\r\n\r\n`);
    const [answer] = await once(socket, 'data');
    return { status: String(answer).slice(9, 12), socket, closed };
  };
  const asked = [];
  for (const host of ['one', 'one', 'two', 'two', 'one']) asked.push(await ask(host));
  expect(asked.map(({ status }) => status)).toEqual(['204', '204', '204', '204', '429']);
  await asked.pop()?.closed;
  for (const { socket } of asked) socket.destroy();
});

test('the server is well while others hold every connection', async () => {
  const server = await serve(() => ({ status: 404, headers: {} }), { connectionsMax: 2 });
  const held = [await hold(server, '127.0.7.1'), await hold(server, '127.0.7.2')];
  await (await hold(server, '127.0.7.3')).closed;
  expect(await server.problem(60_000)).toBeUndefined();
  for (const { socket } of held) socket.destroy();
});

test('the server is unwell when its handler hangs, or when it no longer listens', async () => {
  const server = await serve(() => new Promise<never>(() => undefined));
  expect(await server.problem(50)).toBe('HTTP: no answer within 50 ms');
  await servers.pop()?.close();
  expect(await server.problem(60_000)).toBe('HTTP does not listen any more');
});

test('the error of a failed request is reported, and none for a missing file', async () => {
  const failures: unknown[] = [];
  const planted = new Error('planted');
  const fileOf = (path: string) => ({ kind: 'file', path, start: 0, end: 3 }) as const;
  const server = await serve(
    ({ target }) => {
      if (target === '/bad') throw planted;
      // A folder can be opened, and not be read.
      const path = target === '/folder' ? folder : join(folder, 'gone');
      return { status: 200, headers: {}, body: fileOf(path) };
    },
    { onFailure: (error) => void failures.push(error) },
  );
  expect((await get(server, '/gone')).status).toBe(404);
  expect(failures).toEqual([]);
  expect((await get(server, '/bad')).status).toBe(500);
  expect(failures).toEqual([planted]);
  await expect(get(server, '/folder')).rejects.toThrow();
  expect(failures).toHaveLength(2);
  expect(failures[1]).toMatchObject({ code: 'EISDIR' });
});

test('the server reports no error of a client that goes within its own body', async () => {
  const failures: unknown[] = [];
  const handled = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  const server = await serve(
    () => {
      handled.resolve();
      return { status: 200, headers: {}, onEnd: () => ended.resolve() };
    },
    { onFailure: (error) => void failures.push(error) },
  );
  const { socket } = await hold(server, '127.0.7.1');
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na');
  await handled.promise;
  socket.resetAndDestroy();
  await ended.promise;
  await new Promise((resolve) => setImmediate(resolve));
  expect(failures).toEqual([]);
});

test('the server reports no error of a client that goes while a file is sent to it', async () => {
  const failures: unknown[] = [];
  const { path, server } = await serveLarge({ onFailure: (error) => void failures.push(error) });
  // What is told first, the reset or the end of the write, is a matter of chance.
  for (let client = 0; client < 10; client += 1) {
    const { socket, closed } = pipeline(server, 1);
    await expect.poll(() => timesOpen(path), { interval: 5 }).toBe(1);
    socket.resetAndDestroy();
    await closed;
    await expect.poll(() => timesOpen(path), { interval: 5 }).toBe(0);
  }
  expect(failures).toEqual([]);
});

test('a handler that throws costs its request, not the server', async () => {
  const server = await serve(({ target }) => {
    if (target === '/bad') throw new Error('planted');
    return { status: 200, headers: {} };
  });
  expect((await get(server, '/bad')).status).toBe(500);
  expect((await get(server, '/good')).status).toBe(200);
});

test('the start rejects when the address is taken', async () => {
  const { port } = await serve(() => ({ status: 200, headers: {} }));
  const again = nodeHttp().listen(
    {
      ...{ address: '127.0.0.1', port, headerBytesMax: 1, idleTimeoutMs: 1, keptFileBytesMax: 0 },
      ...{ connectionsMax: 1, connectionsPerAddressMax: 1, connectionsPerHostMax: 1 },
    },
    () => ({ status: 200, headers: {} }),
  );
  await expect(again).rejects.toThrow('EADDRINUSE');
});

test('a file is sent as it is written; the connection breaks if the rest never comes', async () => {
  const path = join(folder, 'coming');
  await writeFile(path, 'first');
  const asked = Promise.withResolvers<AbortSignal>();
  const grown = Promise.withResolvers<number>();
  const readable = async (at: number, signal: AbortSignal): Promise<number> => {
    if (at === 0) return 5;
    asked.resolve(signal);
    return grown.promise;
  };
  const body = { kind: 'file', path, start: 0, end: 11, readable } as const;
  const server = await serve(() => ({ status: 200, headers: {}, body }));
  const whole = get(server).then((response) => response.text());
  await asked.promise;
  await writeFile(path, 'first second');
  grown.resolve(12);
  expect(await whole).toBe('first second');

  const failing = async (at: number): Promise<number> =>
    at === 0 ? 5 : Promise.reject(new Error('it does not come'));
  const other = await serve(() => ({
    ...{ status: 200, headers: {} },
    body: { ...body, readable: failing },
  }));
  // The sent part of it may be lost with the connection.
  await expect(get(other).then((response) => response.text())).rejects.toThrow();
});

test('a client that leaves during its wait for the rest of a file ends the wait', async () => {
  const path = join(folder, 'coming');
  await writeFile(path, 'first');
  const asked = Promise.withResolvers<AbortSignal>();
  const readable = (at: number, signal: AbortSignal): Promise<number> => {
    if (at === 0) return Promise.resolve(5);
    asked.resolve(signal);
    return new Promise((_, reject) => signal.addEventListener('abort', reject));
  };
  const body = { kind: 'file', path, start: 0, end: 11, readable } as const;
  const server = await serve(() => ({ status: 200, headers: {}, body }));
  const socket = connect(server.port, server.address, () =>
    socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n'),
  );
  const signal = await asked.promise;
  const aborted = once(signal, 'abort');
  socket.destroy();
  await aborted;
});

test('a file on its way that is gone is asked for again', async () => {
  const readable = async (): Promise<number> => 1;
  const path = join(folder, 'gone');
  const body = { kind: 'file', path, start: 0, end: 11, readable } as const;
  const server = await serve(() => ({ status: 200, headers: {}, body }));
  expect((await get(server)).status).toBe(503);
});
