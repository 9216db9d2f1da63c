import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import { type AddressInfo, createServer as createTcp, type Socket } from 'node:net';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { HttpsLimits, HttpsOutcome, HttpsPeer, HttpsRequest } from '../https-client.ts';
import { nodeHttpClient } from './on-demand.ts';
import { type TestCertificate, testCertificate } from './test-certificate.ts';

const limits: HttpsLimits = {
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 5_000,
  bodyBytesMax: 1_000,
  headerBytesMax: 4_096,
};
const get: HttpsRequest = { method: 'GET', path: '/x', headers: { authorization: 'secret' } };
const other = 'ab'.repeat(32);

let certificate: TestCertificate;
const closers: (() => void)[] = [];

beforeAll(async () => {
  certificate = await testCertificate('bmc');
});

afterEach(() => {
  for (const close of closers.splice(0)) close();
});

type Handle = (request: IncomingMessage, response: ServerResponse) => void;

interface Rig {
  readonly peer: (pin?: string, changes?: Partial<HttpsLimits>) => HttpsPeer;
  readonly server: Server;
  readonly requests: string[];
  readonly sockets: Socket[];
}

async function serve(handle: Handle): Promise<Rig> {
  const requests: string[] = [];
  const sockets: Socket[] = [];
  const { key, cert } = certificate;
  const server = createServer({ key, cert }, (request, response) => {
    requests.push(`${request.method} ${request.url}`);
    handle(request, response);
  });
  server.on('connection', (socket: Socket) => sockets.push(socket));
  server.on('tlsClientError', () => {});
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const peer: Rig['peer'] = (pin, changes = {}) => {
    const target = { address: '127.0.0.1', port, certificateSha256: pin };
    const made = nodeHttpClient().peer(target, { ...limits, ...changes });
    closers.push(() => made.close());
    return made;
  };
  return { peer, server, requests, sockets };
}

const hello: Handle = (_request, response) => response.end('hello');

function text(outcome: HttpsOutcome): string {
  return outcome.kind === 'answered' ? Buffer.from(outcome.body).toString() : outcome.kind;
}

describe('the HTTPS client', () => {
  test('reports the certificate of a device of which none is pinned', async () => {
    const { peer } = await serve(hello);
    const outcome = await peer().request(get);
    expect(outcome).toMatchObject({ kind: 'answered', status: 200 });
    expect(outcome).toMatchObject({ certificateSha256: certificate.sha256 });
    expect(text(outcome)).toBe('hello');
  });

  test('accepts the pinned certificate', async () => {
    const { peer } = await serve(hello);
    expect(text(await peer(certificate.sha256).request(get))).toBe('hello');
  });

  test('refuses another certificate than the pinned one, and sends nothing', async () => {
    const { peer, requests, sockets } = await serve(hello);
    const outcome = await peer(other).request(get);
    const shown = certificate.sha256;
    expect(outcome).toEqual({ kind: 'certificateRefused', pinned: other, shown });
    const [socket] = sockets;
    if (socket === undefined) throw new Error('nobody connected');
    if (!socket.destroyed) await once(socket, 'close');
    expect(requests).toEqual([]);
  });

  test('keeps its connection between requests', async () => {
    const { peer, sockets, requests } = await serve(hello);
    const one = peer();
    for (let count = 0; count < 3; count += 1) {
      const outcome = await one.request({ ...get, method: 'POST', body: '{}' });
      expect(outcome).toMatchObject({ certificateSha256: certificate.sha256 });
    }
    expect(requests).toHaveLength(3);
    expect(sockets).toHaveLength(1);
  });

  test('sends a GET again when the idle connection was gone', async () => {
    const { peer, requests } = await serve((request, response) => {
      // The second request on a connection finds it closed, as with a device that gave up waiting.
      if (requests.length === 2) request.socket.destroy();
      else response.end('hello');
    });
    const one = peer();
    expect(text(await one.request(get))).toBe('hello');
    expect(text(await one.request(get))).toBe('hello');
    expect(requests).toHaveLength(3);
  });

  test('never sends a POST again, and says that it may have arrived', async () => {
    const { peer, requests } = await serve((request, response) => {
      if (request.method === 'POST') request.socket.destroy();
      else response.end('hello');
    });
    const one = peer();
    await one.request(get);
    const outcome = await one.request({ ...get, method: 'POST', body: '{}' });
    expect(outcome).toMatchObject({ kind: 'broken', mayHaveArrived: true });
    expect(requests).toHaveLength(2);
  });

  test('gives up a body above its limit', async () => {
    const { peer } = await serve((_request, response) => response.end('x'.repeat(1_001)));
    expect(await peer().request(get)).toEqual({
      kind: 'noHttp',
      message: 'the answer is longer than 1000 bytes',
    });
  });

  test('gives up a silent device in time', async () => {
    const { peer } = await serve(() => {});
    const outcome = await peer(undefined, { requestTimeoutMs: 200 }).request(get);
    expect(outcome).toMatchObject({ kind: 'timedOut', mayHaveArrived: true });
  });

  test('ends early when its caller gives up', async () => {
    const { peer } = await serve(() => {});
    const abort = new AbortController();
    const waiting = peer().request(get, abort.signal);
    abort.abort();
    expect(await waiting).toEqual({ kind: 'cancelled' });
  });

  test('calls an answer that ends early broken', async () => {
    const { peer } = await serve((request, response) => {
      response.writeHead(200, { 'content-length': 100 });
      response.write('part', () => request.socket.destroy());
    });
    expect(await peer().request(get)).toMatchObject({ kind: 'broken' });
  });
});

/** A device that speaks something else. */
async function tcp(
  onConnection: (socket: Socket) => void,
  connectTimeoutMs: number = limits.connectTimeoutMs,
): Promise<HttpsPeer> {
  const server = createTcp((socket) => {
    socket.on('error', () => {});
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const target = { address: '127.0.0.1', port, certificateSha256: undefined };
  const made = nodeHttpClient().peer(target, { ...limits, connectTimeoutMs });
  closers.push(() => {
    made.close();
    server.close();
  });
  return made;
}

describe('a device that does not speak HTTPS', () => {
  test('is told from a silent one', async () => {
    const plain = await tcp((socket) => socket.end('HTTP/1.0 400 Bad Request\r\n\r\n'));
    expect(await plain.request(get)).toMatchObject({ kind: 'noTls' });
    const silent = await tcp((socket) => closers.push(() => socket.destroy()), 300);
    const outcome = await silent.request(get);
    expect(outcome).toEqual({
      kind: 'timedOut',
      message: 'no connection in 0.3 s',
      mayHaveArrived: false,
    });
  });

  test('is broken when it hangs up, or when nobody listens', async () => {
    const hangsUp = await tcp((socket) => socket.destroy());
    expect(await hangsUp.request(get)).toMatchObject({ kind: 'broken', mayHaveArrived: false });
    const { peer, server } = await serve(hello);
    server.close();
    await once(server, 'close');
    expect(await peer().request(get)).toMatchObject({ kind: 'broken', mayHaveArrived: false });
  });

  test('is unknown when its name is', async () => {
    const target = { address: 'no-such-host.invalid', port: 443, certificateSha256: undefined };
    const peer = nodeHttpClient().peer(target, limits);
    closers.push(() => peer.close());
    const { kind } = await peer.request(get);
    // Without any name server the answer is "try again".
    expect(['unknownName', 'broken']).toContain(kind);
  });
});

test('a name leads to no device of this machine itself', async () => {
  const { server, requests } = await serve(hello);
  const { port } = server.address() as AddressInfo;
  for (const address of ['localhost', '127.1', '2130706433', '0x7f000001']) {
    const peer = nodeHttpClient().peer({ address, port, certificateSha256: undefined }, limits);
    expect(await peer.request(get), address).toMatchObject({ kind: 'unknownName' });
    peer.close();
  }
  expect(requests).toEqual([]);
});
