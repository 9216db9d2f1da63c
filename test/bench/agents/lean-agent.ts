/**
 * An agent without an agent: the session's real protocol over HTTP/2 and TLS, as little of it as
 * goes, so that thousands fit into one process. What it says may be anything, true or not.
 */
import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes } from 'node:crypto';
import { type ClientHttp2Session, type ClientHttp2Stream, connect as dial } from 'node:http2';
import { connect as dialTls, type TLSSocket } from 'node:tls';
import { create, fromBinary, type MessageInitShape, toBinary } from '@bufbuild/protobuf';
import { agent, type RackId, signCertificateProof } from '@rackwright/messages';
import { type Channel, createClient } from '@rackwright/rpc';
import { stubbornly } from './stubborn.ts';

export interface Credentials {
  readonly rackId: RackId;
  readonly privateKeyPem: string;
  readonly certificatePem: string;
  readonly caPem: string;
}

/** Joins as the rack's agent: a key of its own, and the certificate for it. */
export async function enrol(channel: Channel, joinToken: string): Promise<Credentials> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
  const publicKey = createPublicKey(createPrivateKey(pem)).export({ type: 'spki', format: 'der' });
  const nonce = randomBytes(16);
  const signature = signCertificateProof(privateKey, publicKey, nonce);
  const secret = joinToken.split('.').slice(2).join('.');
  const enrolment = createClient(agent.EnrolmentService, channel);
  const request = { publicKey, nonce, signature, joinToken: secret };
  const issued = await stubbornly((deadlineMs) =>
    enrolment.issueCertificate(request, { deadlineMs, waitForReady: true }),
  );
  return {
    rackId: issued.rack.replace('racks/', ''),
    privateKeyPem: pem,
    certificatePem: issued.certificatePem,
    caPem: issued.caCertificatePem,
  };
}

export type Message = agent.SessionResponse['message'];
export type Request = NonNullable<
  Exclude<MessageInitShape<typeof agent.SessionRequestSchema>, agent.SessionRequest>['message']
>;

/** How a stream ended. */
export interface Ended {
  /** gRPC's status; undefined: the connection broke. */
  readonly status: string | undefined;
  readonly message: string;
}

const path = '/rackwright.agent.v1.AgentService/Session';

/** One stream; what comes goes to `onMessage`. */
export class LeanStream {
  readonly ended: Promise<Ended>;
  readonly #socket: TLSSocket;
  readonly #session: ClientHttp2Session;
  readonly #stream: ClientHttp2Stream;
  #rest: Buffer = Buffer.alloc(0);

  constructor(
    port: number,
    { caPem, certificatePem, privateKeyPem }: Credentials,
    onMessage: (message: Message, bytes: Buffer) => void,
    localAddress = '127.0.0.1',
  ) {
    this.#socket = dialTls({
      ...{ host: '127.0.0.1', port, localAddress, ALPNProtocols: ['h2'], minVersion: 'TLSv1.3' },
      ...{ ca: caPem, cert: certificatePem, key: privateKeyPem, servername: 'localhost' },
    });
    this.#session = dial(`https://localhost:${port}`, { createConnection: () => this.#socket });
    this.#session.on('error', () => undefined);
    this.#stream = this.#session.request({
      ...{ ':method': 'POST', ':path': path, te: 'trailers' },
      'content-type': 'application/grpc',
    });
    this.ended = this.#end();
    this.#stream.on('data', (chunk: Buffer) => {
      for (const bytes of this.#frames(chunk)) {
        onMessage(fromBinary(agent.SessionResponseSchema, bytes).message, bytes);
      }
    });
  }

  #end(): Promise<Ended> {
    const { promise, resolve } = Promise.withResolvers<Ended>();
    let said: Ended | undefined;
    const take = (headers: Readonly<Record<string, string | number | undefined>>) => {
      const status = headers['grpc-status'];
      if (status === undefined) return;
      const message = decodeURIComponent(String(headers['grpc-message'] ?? ''));
      said = { status: String(status), message };
    };
    this.#stream.on('response', take);
    this.#stream.on('trailers', take);
    // The server is done: what we would still say is not heard any more.
    this.#stream.on('end', () => this.#stream.close());
    this.#stream.on('error', () => undefined);
    this.#socket.on('error', () => undefined);
    this.#stream.on('close', () => {
      resolve(said ?? { status: undefined, message: 'the connection broke' });
      this.#socket.destroy();
    });
    return promise;
  }

  #frames(chunk: Buffer): Buffer[] {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    const all: Buffer[] = [];
    while (this.#rest.length >= 5) {
      const end = 5 + this.#rest.readUInt32BE(1);
      if (this.#rest.length < end) break;
      all.push(this.#rest.subarray(5, end));
      this.#rest = this.#rest.subarray(end);
    }
    return all;
  }

  /** False: what was sent before has not gone out yet. */
  send(message: Request): boolean {
    const request = create(agent.SessionRequestSchema, { message });
    return this.sendBytes(toBinary(agent.SessionRequestSchema, request));
  }

  /** One message of these bytes, whatever they are. */
  sendBytes(bytes: Uint8Array): boolean {
    if (this.#stream.destroyed || this.#stream.closed) return true;
    const frame = Buffer.allocUnsafe(5 + bytes.length);
    frame.writeUInt8(0, 0);
    frame.writeUInt32BE(bytes.length, 1);
    frame.set(bytes, 5);
    return this.#stream.write(frame);
  }

  /** What was sent before has gone out. */
  drained(): Promise<void> {
    return new Promise((resolve) => {
      this.#stream.once('drain', resolve);
      this.#stream.once('close', () => resolve());
    });
  }

  /** Pulls the plug. */
  cut(): void {
    this.#stream.destroy();
    this.#session.destroy();
    this.#socket.destroy();
  }
}
