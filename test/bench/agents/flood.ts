/**
 * What somebody with no more than network access can do to both ports, at a bounded rate: so many
 * connections begin in a second, each kind in its turn, from many addresses. None is given up
 * before the server has closed it or its time is over. An honest flood is bounded: one that took
 * all of the machine would measure itself.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as dial } from 'node:http2';
import { connect as dialTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as dialTls } from 'node:tls';
import { create, toBinary } from '@bufbuild/protobuf';
import { agent, signCertificateProof } from '@rackwright/api';

export interface FloodPorts {
  readonly agents: number;
  readonly operators: number;
}

/** What a flood has done, by kind: connections, those the server closed, calls it answered. */
export type FloodCounts = Readonly<Record<string, Readonly<Count>>>;

interface Count {
  begun: number;
  endedByServer: number;
  answered: number;
}

/** Connections that begin in a second, all kinds together. */
export const floodPerSecond = 300;
/** A connection is given up after this. */
const heldMs = 12_000;
/** Of each kind: one that makes its addresses suspect does so for itself only. */
const floodAddresses = 250;
const firstNet = 200;
/** Connections begin in bundles. */
const tickMs = 10;
const bundleMax = 8;
/** Calls on one connection, of the kinds that call. */
const callsPerConnection = 20;
const hugeHeaderBytes = 60_000;
/** Of a slow body there comes so much each time, of so much that was announced. */
const slowPieceBytes = 16 * 1024;
const slowPieceMs = 100;
const announcedBytes = 3 * 1024 * 1024;

const enrolmentPath = '/rackwright.agent.v1.EnrolmentService/IssueCertificate';
const listPath = '/rackwright.v1.HostService/ListHosts';

interface To {
  readonly host: string;
  readonly port: number;
  readonly localAddress: string;
}

/** `answered` is called for each call that the server has answered. */
type Attack = (to: To, answered: () => void) => Socket;

interface Kind {
  readonly port: keyof FloodPorts;
  readonly begin: Attack;
}

function frame(body: Uint8Array, announced = body.length): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(announced, 1);
  return Buffer.concat([head, body]);
}

/** A request for a certificate with a good proof, and a token that never was. */
function enrolment(): Buffer {
  const { privateKey, publicKey: own } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const publicKey = own.export({ type: 'spki', format: 'der' });
  const nonce = randomBytes(16);
  const signature = signCertificateProof(privateKey, publicKey, nonce);
  const joinToken = `r1.${randomBytes(32).toString('base64url')}`;
  const request = { publicKey, nonce, signature, joinToken };
  const schema = agent.IssueCertificateRequestSchema;
  return frame(toBinary(schema, create(schema, request)));
}

const silent = (to: To): Socket => dialTcp(to);

const tls = (to: To): Socket =>
  dialTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'], minVersion: 'TLSv1.3' });

/** A connection with calls on it. */
function calling(
  path: string,
  headers: () => Readonly<Record<string, string>>,
  body: (stream: ClientHttp2Stream) => void,
  calls = callsPerConnection,
): Attack {
  return (to, answered) => {
    const socket = tls(to);
    const session: ClientHttp2Session = dial('https://localhost', {
      createConnection: () => socket,
      maxSendHeaderBlockLength: 4 * hugeHeaderBytes,
    });
    session.on('error', () => undefined);
    for (let each = 0; each < calls; each += 1) {
      const stream = session.request({
        ...{ ':method': 'POST', ':path': path, te: 'trailers' },
        ...{ 'content-type': 'application/grpc', ...headers() },
      });
      stream.on('error', () => undefined);
      stream.once('response', answered);
      stream.resume();
      body(stream);
    }
    socket.on('close', () => session.destroy());
    return socket;
  };
}

const none = () => ({});
const wrongToken = () => ({ authorization: `Bearer rwo1.x.${randomBytes(32).toString('hex')}` });

function dripping(stream: ClientHttp2Stream): void {
  stream.write(frame(Buffer.alloc(slowPieceBytes), announcedBytes));
  const timer = setInterval(() => {
    if (stream.writableLength < slowPieceBytes) stream.write(Buffer.alloc(slowPieceBytes));
  }, slowPieceMs);
  stream.on('close', () => clearInterval(timer));
}

function kinds(): Readonly<Record<string, Kind>> {
  const request = enrolment();
  const halfOpen = calling(enrolmentPath, none, () => undefined);
  const tooBig = () => ({ 'x-big': 'a'.repeat(hugeHeaderBytes) });
  return {
    'silent, agents': { port: 'agents', begin: silent },
    'silent, operators': { port: 'operators', begin: silent },
    'half a ClientHello': {
      port: 'agents',
      begin: (to) => {
        const socket = dialTcp(to);
        socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
        return socket;
      },
    },
    'no certificate': { port: 'agents', begin: tls },
    'handshake and nothing': { port: 'operators', begin: tls },
    'headers without body': { port: 'operators', begin: halfOpen },
    'huge headers': { port: 'operators', begin: calling(listPath, tooBig, (call) => call.end()) },
    'slow bodies': { port: 'operators', begin: calling(enrolmentPath, none, dripping) },
    'whole but never ended': {
      port: 'operators',
      begin: calling(listPath, wrongToken, (call) => call.write(frame(Buffer.alloc(0)))),
    },
    'IssueCertificate with a made-up token': {
      port: 'operators',
      begin: calling(enrolmentPath, none, (call) => call.end(request)),
    },
    'calls with a made-up token': {
      port: 'operators',
      begin: calling(listPath, wrongToken, (call) => call.end(frame(Buffer.alloc(0)))),
    },
  };
}

/** Begins; the returned function ends it. */
export function flood(ports: FloodPorts): () => Promise<FloodCounts> {
  const all = Object.entries(kinds());
  const counts = new Map(all.map(([name]) => [name, { begun: 0, endedByServer: 0, answered: 0 }]));
  const open = new Set<Socket>();
  let made = 0;
  let isOver = false;
  const one = () => {
    const [name, kind] = all[made % all.length] ?? [];
    const count = counts.get(name ?? '');
    if (kind === undefined || count === undefined) return;
    // Each kind from each address in the course of time.
    const net = firstNet + (made % all.length);
    const localAddress = `127.0.${net}.${1 + (Math.floor(made / all.length) % floodAddresses)}`;
    made += 1;
    count.begun += 1;
    const to = { host: '127.0.0.1', port: ports[kind.port], localAddress };
    const socket = kind.begin(to, () => {
      count.answered += 1;
    });
    open.add(socket);
    socket.on('error', () => undefined);
    const timer = setTimeout(() => {
      open.delete(socket);
      socket.destroy();
    }, heldMs);
    socket.on('close', () => {
      clearTimeout(timer);
      if (open.delete(socket)) count.endedByServer += 1;
    });
  };
  const begin = async () => {
    let [lastMs, due] = [performance.now(), 0];
    while (!isOver) {
      await sleep(tickMs);
      const nowMs = performance.now();
      // What was missed is not made up for: that would be a burst of our own making.
      due = Math.min(bundleMax, due + ((nowMs - lastMs) * floodPerSecond) / 1_000);
      lastMs = nowMs;
      for (; due >= 1; due -= 1) one();
    }
  };
  const beginning = begin();
  return async () => {
    isOver = true;
    await beginning;
    for (const socket of open) {
      open.delete(socket);
      socket.destroy();
    }
    return Object.fromEntries(counts);
  };
}
