/** A server of a health service over HTTP/1.1 and gRPC, and clients of it, for tests. */
import type { IncomingHttpHeaders } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect as dialTls, type TLSSocket } from 'node:tls';
import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-node';
import {
  type BoundService,
  bind,
  type Guard,
  type Handlers,
  Health,
  unauthenticated,
} from '@rackwright/messages';
import { nodeClock, nodeRandom } from '@rackwright/platform/node';
import { quietLog } from '@rackwright/platform/testing';
import { type RpcServer, type ServeOptions, serve } from '../server/server.ts';
import { createTestCa, type TestCa } from '../wire/test-pki.ts';
import { overHttp } from './http-calls.ts';

export interface HttpServer {
  readonly server: RpcServer;
  readonly ca: TestCa;
  readonly url: string;
}

/** A health service whose other methods do nothing. */
export function health(handlers: Partial<Handlers<typeof Health>>): BoundService {
  return bind(Health, {
    check: () => ({}),
    list: () => ({}),
    watch: async function* () {},
    ...handlers,
  });
}

/** The caller's name is its token; a caller without one is refused. */
export const byToken: Guard = (context) => {
  const token = context.header('authorization')?.replace('Bearer ', '');
  if (token === undefined) throw unauthenticated('TOKEN_MISSING', 'No token was sent.');
  return token;
};

export async function startHttp(
  service: BoundService,
  more: Partial<ServeOptions> = {},
): Promise<HttpServer> {
  const ca = await createTestCa();
  const server = await serve({
    ...{ address: '127.0.0.1', port: 0, log: quietLog, clock: nodeClock(), random: nodeRandom() },
    tls: await ca.server(),
    services: [service],
    guard: byToken,
    http: overHttp(({ path }) => ({ status: 404, headers: {}, body: Buffer.from(path) })),
    ...more,
    limits: { closeGraceMs: 300, ...more.limits },
  });
  return { server, ca, url: `https://127.0.0.1:${server.port}` };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** One request on a connection of its own. */
export function ask({ url, ca }: HttpServer, path: string, asking: Asking = {}): Promise<Answer> {
  const { method = 'POST', headers = {}, body } = asking;
  return new Promise((resolve, reject) => {
    const options = { method, headers, ca: ca.caPem, agent: false, path };
    const clientRequest = httpsRequest(url, options, (response) => {
      const pieces: Buffer[] = [];
      response.on('data', (piece: Buffer) => pieces.push(piece));
      response.on('error', reject);
      response.on('end', () => {
        const { statusCode: status = 0 } = response;
        resolve({ status, headers: response.headers, body: Buffer.concat(pieces) });
      });
    });
    clientRequest.on('error', reject);
    clientRequest.end(body);
  });
}

export const json = (token: string): Record<string, string> => ({
  'content-type': 'application/json',
  authorization: `Bearer ${token}`,
});

/** A raw HTTP/1.1 connection, for bytes that no client would send. */
export function dial({ server, ca }: HttpServer, protocols = ['http/1.1']): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = dialTls({
      ...{ host: '127.0.0.1', port: server.port, ca: ca.caPem, ALPNProtocols: protocols },
    });
    socket.once('secureConnect', () => resolve(socket)).once('error', reject);
  });
}

/** All that comes on it until it is closed. */
export function untilClosed(socket: TLSSocket): Promise<string> {
  return new Promise((resolve) => {
    let text = '';
    socket.on('data', (piece: Buffer) => {
      text += piece.toString('latin1');
    });
    socket.on('error', () => undefined).once('close', () => resolve(text));
  });
}

/** What foreign clients call by; each a protocol of its own. */
export const transports = {
  'Connect with JSON': (to: HttpServer) => createConnectTransport(optionsOf(to, false)),
  'Connect with protobuf': (to: HttpServer) => createConnectTransport(optionsOf(to, true)),
  'gRPC-Web with protobuf': (to: HttpServer) => createGrpcWebTransport(optionsOf(to, true)),
  'gRPC-Web with JSON': (to: HttpServer) => createGrpcWebTransport(optionsOf(to, false)),
} as const;

function optionsOf({ url, ca }: HttpServer, useBinaryFormat: boolean) {
  const nodeOptions = { ca: ca.caPem };
  return { baseUrl: url, httpVersion: '1.1', nodeOptions, useBinaryFormat } as const;
}
