import { once } from 'node:events';
import { createServer as createHttp, type RequestListener } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { type AddressInfo, createServer as createTcp } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { WebBroken, type WebLimits, type WebOutcome, WebTooSlow } from '../web-client.ts';
import { guardedWebClient, nodeWebClient } from './on-demand.ts';
import { testCertificate } from './test-certificate.ts';

/** Longer than a busy machine takes for a long body; tests of a limit set their own. */
const limits: WebLimits = { answerTimeoutMs: 60_000, silenceMs: 60_000, headerBytesMax: 4_096 };
const closers: (() => void)[] = [];

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(handle: RequestListener): Promise<string> {
  const server = createHttp(handle).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const get = (url: string, changes: Partial<WebLimits> = {}, signal?: AbortSignal) =>
  nodeWebClient().send({ method: 'GET', url, headers: {} }, { ...limits, ...changes }, signal);

async function textOf(outcome: WebOutcome): Promise<string> {
  if (outcome.kind !== 'answered') throw new Error(outcome.kind);
  const parts: Uint8Array[] = [];
  for await (const part of outcome.body) parts.push(part);
  return Buffer.concat(parts).toString();
}

test('the client sends a body and streams what is answered', async () => {
  const url = await serve((request, response) => {
    response.writeHead(201, { 'x-method': `${request.method} ${request.url}` });
    request.pipe(response);
  });
  const body = Buffer.from('what is sent');
  const sent = { method: 'POST', url: `${url}/a?b=c`, headers: {}, body } as const;
  const outcome = await nodeWebClient().send(sent, limits);
  expect(outcome).toMatchObject({ status: 201, headers: { 'x-method': 'POST /a?b=c' } });
  expect(await textOf(outcome)).toBe('what is sent');
});

test('the client leaves a redirect to whoever asked', async () => {
  const url = await serve((_, response) => {
    response.writeHead(307, { location: 'http://192.0.2.1/' }).end();
  });
  const outcome = await get(url);
  expect(outcome).toMatchObject({ status: 307, headers: { location: 'http://192.0.2.1/' } });
});

test('the client takes no part of a body for the whole', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 100 });
    response.write('half', () => response.destroy());
  });
  await expect(textOf(await get(url))).rejects.toThrow(WebBroken);
});

test('the client gives up a body that stalls, and one that is cancelled', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 100 }).write('half');
  });
  await expect(textOf(await get(url, { silenceMs: 50 }))).rejects.toThrow(
    'nothing came for 0.05 s',
  );
  const stop = new AbortController();
  const outcome = await get(url, {}, stop.signal);
  setTimeout(() => stop.abort(), 20);
  await expect(textOf(outcome)).rejects.toThrow(WebBroken);
});

test('a body that comes too slowly is given up, and one that is quick enough is not', async () => {
  const url = await serve((_, response) => {
    response.writeHead(200, { 'content-length': 40 });
    const drip = setInterval(() => response.write('x'), 50);
    response.once('close', () => clearInterval(drip));
  });
  const slow = get(url, { floor: { bytes: 1_000, everyMs: 100 } });
  await expect(slow.then(textOf)).rejects.toThrow(WebTooSlow);
  const late = get(url, { floor: { bytes: Number.POSITIVE_INFINITY, everyMs: 100 } });
  await expect(late.then(textOf)).rejects.toThrow('the answer not whole in 0.1 s');
  expect(await textOf(await get(url, { floor: { bytes: 1, everyMs: 1_500 } }))).toHaveLength(40);
});

test('the client bounds the wait for an answer, and its headers', async () => {
  const silent = await serve(() => {});
  expect(await get(silent, { answerTimeoutMs: 50 })).toEqual({
    kind: 'unreachable',
    message: 'no answer in 0.05 s',
    mayHaveArrived: true,
  });
  const long = await serve((_, response) => {
    response.writeHead(200, { 'x-long': 'x'.repeat(5_000) }).end();
  });
  expect(await get(long)).toMatchObject({ kind: 'noHttp' });
});

test('the client says that nothing has arrived where nobody listens', async () => {
  const server = createTcp().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  expect(await get(`http://127.0.0.1:${port}/`)).toMatchObject({
    kind: 'unreachable',
    mayHaveArrived: false,
  });
});

test.each(['http', 'https'] as const)(
  'the client leaves no memory of a long body behind, by %s',
  async (by) => {
    const { key, cert } = await testCertificate('localhost');
    const sent = Buffer.alloc(48 * 1024 * 1024, 'what is sent');
    const answer: RequestListener = (_, response) => void response.end(sent);
    const server = by === 'http' ? createHttp(answer) : createHttps({ key, cert }, answer);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    closers.push(() => server.close());
    const url = `${by}://localhost:${(server.address() as AddressInfo).port}/`;
    const outcome = await nodeWebClient([cert]).send({ method: 'GET', url, headers: {} }, limits);
    if (outcome.kind !== 'answered') throw new Error(outcome.kind);
    const before = process.memoryUsage().arrayBuffers;
    let [at, most] = [0, 0];
    for await (const part of outcome.body) {
      const wanted = sent.subarray(at, at + part.length);
      if (Buffer.compare(part, wanted) !== 0) throw new Error(`other bytes at ${at}`);
      at += part.length;
      // As a program that writes an image does.
      if (part.buffer instanceof ArrayBuffer) part.buffer.transfer(0);
      most = Math.max(most, process.memoryUsage().arrayBuffers - before);
    }
    expect(at).toBe(sent.length);
    expect(most).toBeLessThan(4 * 1024 * 1024);
  },
);

test('a certificate is trusted by authority and name; nothing is sent before that', async () => {
  const { key, cert } = await testCertificate('localhost');
  let requests = 0;
  const server = createHttps({ key, cert }, (_, response) => {
    requests += 1;
    response.end('in confidence');
  }).listen(0, '127.0.0.1');
  server.on('tlsClientError', () => {});
  await once(server, 'listening');
  closers.push(() => server.close());
  const url = `https://localhost:${(server.address() as AddressInfo).port}/`;
  const request = { method: 'GET', url, headers: { authorization: 'secret' } } as const;
  expect(await nodeWebClient().send(request, limits)).toMatchObject({ kind: 'untrusted' });
  expect(requests).toBe(0);
  const knows = nodeWebClient([cert]);
  expect(await textOf(await knows.send(request, limits))).toBe('in confidence');
  const other = { ...request, url: url.replace('localhost', '127.0.0.1') };
  expect(await knows.send(other, limits)).toMatchObject({ kind: 'untrusted' });
  expect(requests).toBe(1);
  // An authority of one request does not apply to the next.
  const client = nodeWebClient();
  const own = { ...request, caPem: cert };
  expect(await textOf(await client.send(own, limits))).toBe('in confidence');
  expect(await client.send(request, limits)).toMatchObject({ kind: 'untrusted' });
  const broken = '-----BEGIN CERTIFICATE-----\nnone\n-----END CERTIFICATE-----\n';
  expect(await client.send({ ...request, caPem: broken }, limits)).toMatchObject({
    kind: 'untrusted',
  });
  expect(requests).toBe(2);
});

test('the error for a server without TLS says so', async () => {
  const url = await serve((_, response) => void response.end('plain'));
  expect(await get(url.replace(/^http:/, 'https:'))).toEqual({
    ...{ kind: 'noHttp', message: 'it does not speak TLS' },
  });
});

test.each(['ftp://127.0.0.1/', 'http://user:word@127.0.0.1/', 'nonsense'])(
  'the client sends nothing to %s',
  async (url) => {
    expect(await get(url)).toMatchObject({ kind: 'noHttp' });
  },
);

test('the client hears that it is cancelled before and after it was sent', async () => {
  const url = await serve(() => {});
  expect(await get(url, {}, AbortSignal.abort())).toEqual({ kind: 'cancelled' });
  const stop = new AbortController();
  setTimeout(() => stop.abort(), 20);
  expect(await get(url, {}, stop.signal)).toEqual({ kind: 'cancelled' });
});

describe('a guarded client', () => {
  const guarded = (url: string, internal: readonly string[] = []) =>
    guardedWebClient().send({ method: 'GET', url, headers: {}, internal }, limits);

  test('connects to no internal address, however it is written', async () => {
    let requests = 0;
    const url = await serve((_, response) => {
      requests += 1;
      response.end();
    });
    const { port } = new URL(url);
    const hosts = [
      ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0.0.0.0', 'localhost'],
      ...['[::ffff:127.0.0.1]', '[::1]', '[::]', '127.0.0.1.', '169.254.169.254', 'LOCALHOST'],
    ];
    for (const host of hosts) {
      for (const scheme of ['http', 'https']) {
        const outcome = await guarded(`${scheme}://${host}:${port}/`);
        expect(outcome, `${scheme} ${host}`).toMatchObject({ kind: 'forbidden' });
      }
    }
    expect(requests).toBe(0);
  });

  test('connects to a listed address and port', async () => {
    const url = await serve((_, response) => response.end('here'));
    const { port } = new URL(url);
    const other = Number(port) === 1 ? 2 : 1;
    expect(await textOf(await guarded(url, [`127.0.0.1:${port}`]))).toBe('here');
    expect(await textOf(await guarded(url, ['127.0.0.0/8']))).toBe('here');
    const byName = await guarded(`http://localhost:${port}`, [`127.0.0.1:${port}`]);
    expect(await textOf(byName)).toBe('here');
    expect(await guarded(url, [`127.0.0.1:${other}`])).toMatchObject({ kind: 'forbidden' });
  });
});
