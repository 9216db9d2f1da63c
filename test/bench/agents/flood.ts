/**
 * What somebody with no more than network access can do to both ports, at a bounded rate: so many
 * connections begin in a second, each kind in its turn, from many addresses. None is given up
 * before the server has closed it or its time is over. An honest flood is bounded: one that took
 * all of the machine would measure itself.
 */
import { generateKeyPairSync, randomBytes } from 'node:crypto';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect as dial,
  type IncomingHttpHeaders,
} from 'node:http2';
import { connect as dialTcp, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as dialTls } from 'node:tls';
import { create, toBinary } from '@bufbuild/protobuf';
import { agent, signCertificateProof } from '@rackwright/messages';

export interface FloodPorts {
  readonly agents: number;
  readonly operators: number;
}

/** What a flood has done, by kind: connections, those the server closed, what it answered. */
export type FloodCounts = Readonly<Record<string, Readonly<Count>>>;

/** What has come of a flood. */
export interface Flooded {
  readonly counts: FloodCounts;
  /** Kinds that did not get what they are for, each a sentence: these did not do their part. */
  readonly defects: readonly string[];
}

interface Count {
  begun: number;
  endedByServer: number;
  /** How often: a status of gRPC, or how far a connection without calls came. */
  readonly answers: Record<string, number>;
}

/** Connections that begin in a second, all kinds together. */
export const floodPerSecond = 300;
/** A connection is given up after this: longer than a call may be without its first message. */
const heldMs = 17_000;
/** Of each kind: one that makes its addresses suspect does so for itself only. */
const floodAddresses = 250;
const firstNet = 200;
/** Connections begin in bundles. */
const tickMs = 10;
const bundleMax = 8;
/** Calls on one connection, of the kinds that call. */
const callsPerConnection = 20;
/** Of the kind that calls without end: connections at once, and calls under way on each. */
const endlessConnections = 8;
const endlessAtOnce = 50;
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

/** `answered` is called with the status of each call that the server has answered. */
type Attack = (to: To, answered: (what: string) => void) => Socket;

interface Kind {
  readonly port: keyof FloodPorts;
  readonly begin: Attack;
  /** One of these it has to get, or it is not what it is called. */
  readonly gets: readonly string[];
  /** And these it may get beside; any other is a defect. */
  readonly mayGet?: readonly string[];
  /** Connections at once; unset: as many as come. */
  readonly most?: number;
}

/** Statuses of gRPC. */
const deadlineExceeded = '4';
const permissionDenied = '7';
const unavailable = '14';
const unauthenticated = '16';

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

const silent: Attack = (to, answered) => dialTcp(to, () => answered('connected'));

const dialled = (to: To) =>
  dialTls({ ...to, rejectUnauthorized: false, ALPNProtocols: ['h2'], minVersion: 'TLSv1.3' });

const tls: Attack = (to, answered) => dialled(to).once('secureConnect', () => answered('in'));

/** With TLS 1.3 a server says only after the handshake that it wanted a certificate. */
const withoutCertificate: Attack = (to, answered) =>
  dialled(to).on('error', ({ code }: NodeJS.ErrnoException) => {
    if (code?.endsWith('CERTIFICATE_REQUIRED') === true) answered('certificate required');
  });

type Headers = () => Readonly<Record<string, string>>;

/** A connection without a call so far. */
function session(to: To): { readonly socket: Socket; readonly http: ClientHttp2Session } {
  const socket = dialled(to);
  const http = dial('https://localhost', {
    createConnection: () => socket,
    maxSendHeaderBlockLength: 4 * hugeHeaderBytes,
  });
  http.setMaxListeners(0);
  http.on('error', () => undefined);
  socket.on('close', () => http.destroy());
  return { socket, http };
}

/** A call; its body is for the caller to send. */
function request(
  http: ClientHttp2Session,
  path: string,
  headers: Headers,
  answered: (status: string) => void,
): ClientHttp2Stream {
  const stream = http.request({
    ...{ ':method': 'POST', ':path': path, te: 'trailers' },
    ...{ 'content-type': 'application/grpc', ...headers() },
  });
  const take = (received: IncomingHttpHeaders) => {
    const status = received['grpc-status'];
    if (typeof status === 'string') answered(status);
  };
  stream.on('response', take);
  stream.on('trailers', take);
  stream.on('error', () => undefined);
  stream.resume();
  return stream;
}

/** A connection with calls on it. */
function calling(
  path: string,
  headers: Headers,
  body: (stream: ClientHttp2Stream) => void,
): Attack {
  return (to, answered) => {
    const { socket, http } = session(to);
    for (let each = 0; each < callsPerConnection; each += 1) {
      body(request(http, path, headers, answered));
    }
    return socket;
  };
}

/** A connection on which the next call begins as soon as one is over. */
function callingWithoutEnd(path: string, headers: Headers): Attack {
  return (to, answered) => {
    const { socket, http } = session(to);
    const next = (): void => {
      if (http.closed || http.destroyed) return;
      const stream = request(http, path, headers, answered);
      stream.once('close', next);
      stream.end(frame(Buffer.alloc(0)));
    };
    for (let each = 0; each < endlessAtOnce; each += 1) next();
    return socket;
  };
}

const none = () => ({});
/** Of the right shape: it is looked for. */
const wrongToken = () => ({
  authorization: `Bearer rwo1.x.${randomBytes(32).toString('base64url')}`,
});

function dripping(stream: ClientHttp2Stream): void {
  stream.write(frame(Buffer.alloc(slowPieceBytes), announcedBytes));
  const timer = setInterval(() => {
    if (stream.writableLength < slowPieceBytes) stream.write(Buffer.alloc(slowPieceBytes));
  }, slowPieceMs);
  stream.on('close', () => clearInterval(timer));
}

/** What is never whole is ended for its time, or gives way to others, or waits in vain. */
const held = { gets: [deadlineExceeded, unavailable] };
/** Looked at and refused; too many are refused unlooked. */
const refused = { gets: [unauthenticated], mayGet: [unavailable] };

function kinds(): Readonly<Record<string, Kind>> {
  const whole = enrolment();
  const halfOpen = calling(enrolmentPath, none, () => undefined);
  const tooBig = () => ({ 'x-big': 'a'.repeat(hugeHeaderBytes) });
  const empty = frame(Buffer.alloc(0));
  return {
    'silent, agents': { port: 'agents', begin: silent, gets: ['connected'] },
    'silent, operators': { port: 'operators', begin: silent, gets: ['connected'] },
    'half a ClientHello': {
      port: 'agents',
      begin: (to, answered) => {
        const socket = silent(to, answered);
        socket.write(Buffer.from('1603010200010001fc0303', 'hex'));
        return socket;
      },
      gets: ['connected'],
    },
    'no certificate': {
      port: 'agents',
      begin: withoutCertificate,
      gets: ['certificate required'],
    },
    'handshake and nothing': { port: 'operators', begin: tls, gets: ['in'] },
    'headers without body': { port: 'operators', begin: halfOpen, ...held },
    'huge headers': {
      port: 'operators',
      begin: calling(listPath, tooBig, (call) => call.end()),
      ...refused,
    },
    'slow bodies': {
      port: 'operators',
      begin: calling(enrolmentPath, none, dripping),
      ...held,
    },
    'whole but never ended': {
      port: 'operators',
      begin: calling(enrolmentPath, none, (call) => call.write(whole)),
      ...held,
    },
    'IssueCertificate with a made-up token': {
      port: 'operators',
      begin: calling(enrolmentPath, none, (call) => call.end(whole)),
      gets: [permissionDenied],
      mayGet: [unavailable],
    },
    'calls with a made-up token': {
      port: 'operators',
      begin: calling(listPath, wrongToken, (call) => call.end(empty)),
      ...refused,
    },
    'calls without end on few connections': {
      port: 'operators',
      begin: callingWithoutEnd(listPath, wrongToken),
      most: endlessConnections,
      ...refused,
    },
  };
}

function defectsOf(counts: FloodCounts, all: Readonly<Record<string, Kind>>): string[] {
  return Object.entries(all).flatMap(([name, { gets, mayGet = [] }]) => {
    const answers = counts[name]?.answers ?? {};
    const other = Object.keys(answers).filter((each) => ![...gets, ...mayGet].includes(each));
    return [
      ...(gets.some((each) => answers[each] !== undefined)
        ? []
        : [`"${name}" never got ${gets.join(' nor ')}`]),
      ...other.map((each) => `"${name}" got ${each}, which is the answer to something else`),
    ];
  });
}

/** Begins; the returned function ends it. */
export function flood(ports: FloodPorts): () => Promise<Flooded> {
  const byName = kinds();
  const all = Object.entries(byName);
  const counts = new Map<string, Count>(
    all.map(([name]) => [name, { begun: 0, endedByServer: 0, answers: {} }]),
  );
  const open = new Set<Socket>();
  const openOf = new Map<Kind, number>();
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
    const own = openOf.get(kind) ?? 0;
    if (own >= (kind.most ?? Number.POSITIVE_INFINITY)) return;
    openOf.set(kind, own + 1);
    count.begun += 1;
    const to = { host: '127.0.0.1', port: ports[kind.port], localAddress };
    const socket = kind.begin(to, (what) => {
      count.answers[what] = (count.answers[what] ?? 0) + 1;
    });
    open.add(socket);
    socket.on('error', () => undefined);
    const timer = setTimeout(() => {
      open.delete(socket);
      socket.destroy();
    }, heldMs);
    socket.on('close', () => {
      clearTimeout(timer);
      openOf.set(kind, (openOf.get(kind) ?? 1) - 1);
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
    const result = Object.fromEntries(counts);
    return { counts: result, defects: defectsOf(result, byName) };
  };
}
