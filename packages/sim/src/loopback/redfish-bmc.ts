/**
 * The simulated Redfish BMC on a TLS socket of this machine; many may run in one process.
 *
 * 1. Closing it leaves no socket, timer or connection behind.
 * 2. Requests and their bodies are bounded.
 */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { nodeClock } from '@rackwright/platform/node';
import type { RedfishAnswer, RedfishCall } from '../redfish/messages.ts';
import type { RedfishFault, RedfishHealth, RedfishServiceOptions } from '../redfish/options.ts';
import { RedfishService } from '../redfish/service.ts';
import { type SelfSigned, selfSigned } from './certificate.ts';

export interface RedfishBmcOptions extends RedfishServiceOptions {
  /** The listener's address; 127.0.0.1 when unset. */
  readonly address?: string;
  /** 0, the default, lets the system choose. */
  readonly port?: number;
}

/** One request that reached the BMC; without a status when it was never answered. */
export interface RecordedCall {
  readonly method: string;
  readonly path: string;
  status?: number;
}

export interface RedfishBmc {
  readonly address: string;
  readonly port: number;
  /** SHA-256 of the certificate that it began with (DER), lower-case hex. */
  readonly certificateSha256: string;
  readonly certificatePem: string;
  fault(): RedfishFault;
  /** Takes the place of the fault before; `none` makes it well. */
  setFault(fault: RedfishFault): void;
  setPassword(password: string): void;
  /** New connections see a new certificate, the others end. Answers its SHA-256. */
  replaceCertificate(): Promise<string>;
  /** The last requests, the newest last. */
  calls(): readonly RecordedCall[];
  /** How often the machine was ordered to switch. */
  switches(): number;
  /** How often the machine's system was asked to shut down. */
  softOffs(): number;
  isLit(): boolean;
  /** Settings of its machine's firmware that hold now, and its boot order. */
  bios(): Readonly<Record<string, unknown>>;
  bootOrder(): readonly string[];
  /** How often an update of firmware was ordered. */
  updates(): number;
  /** How often a volume was created or deleted, and the present ones: "RAID1 1+2". */
  volumes(): { readonly orders: number; readonly layout: readonly string[] };
  /** URL of the medium in its virtual drive for CDs. */
  medium(): string | undefined;
  setHealth(health: RedfishHealth): void;
  close(): Promise<void>;
}

const callsMax = 500;
const bodyBytesMax = 65_536;
const connectionsMax = 32;
const idleTimeoutMs = 60_000;

export async function startRedfishBmc(options: RedfishBmcOptions): Promise<RedfishBmc> {
  const { address = '127.0.0.1', port = 0, identity } = options;
  const service = new RedfishService(nodeClock(), options);
  const certificate = await selfSigned(identity.serial, address);
  const served = new ServedBmc(service, certificate);
  await served.listen(address, port);
  const { certificateSha256, certificatePem } = certificate;
  return {
    address,
    port: served.port(),
    certificateSha256,
    certificatePem,
    fault: () => service.fault(),
    setFault: (fault) => {
      service.setFault(fault);
      if (fault.kind === 'silent' && fault.how === 'drop') served.dropAll();
    },
    setPassword: (password) => service.setPassword(password),
    replaceCertificate: async () => {
      const next = await selfSigned(identity.serial, address);
      served.show(next);
      return next.certificateSha256;
    },
    calls: () => served.calls,
    switches: () => service.switches(),
    softOffs: () => service.softOffs(),
    isLit: () => service.isLit(),
    bios: () => service.settings().values(),
    updates: () => service.updates(),
    volumes: () => service.volumes(),
    bootOrder: () => service.settings().bootOrder(),
    medium: () => service.medium(),
    setHealth: (health) => service.setHealth(health),
    close: async () => {
      service.stop();
      await served.close();
    },
  };
}

class ServedBmc {
  readonly calls: RecordedCall[] = [];
  readonly #service: RedfishService;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #slow = new Set<NodeJS.Timeout>();

  constructor(service: RedfishService, { keyPem, certificatePem }: SelfSigned) {
    this.#service = service;
    this.#server = createServer({ key: keyPem, cert: certificatePem }, (request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.maxConnections = connectionsMax;
    this.#server.keepAliveTimeout = idleTimeoutMs;
    this.#server.on('connection', (socket: Socket) => this.#accept(socket));
    this.#server.on('tlsClientError', (_error, socket) => socket.destroy());
  }

  async listen(host: string, port: number): Promise<void> {
    this.#server.listen({ host, port });
    await once(this.#server, 'listening');
  }

  port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  show({ keyPem, certificatePem }: SelfSigned): void {
    this.#server.setSecureContext({ key: keyPem, cert: certificatePem });
    this.dropAll();
  }

  dropAll(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  async close(): Promise<void> {
    for (const timer of this.#slow) clearTimeout(timer);
    this.#server.close();
    this.dropAll();
    await once(this.#server, 'close');
  }

  #accept(socket: Socket): void {
    const fault = this.#service.fault();
    if ((fault.kind === 'silent' && fault.how === 'drop') || this.#service.isAway()) {
      socket.destroy();
      return;
    }
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => this.#sockets.delete(socket));
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(request);
    const call = toCall(request, body);
    const recorded: RecordedCall = { method: call.method, path: call.target };
    this.calls.push(recorded);
    if (this.calls.length > callsMax) this.calls.shift();
    const fault = this.#service.fault();
    if (fault.kind === 'silent' || this.#service.isAway()) return;
    if (fault.kind === 'slow') await this.#pause(fault.delayMs);
    const answer = this.#service.answer(call);
    recorded.status = answer.status;
    if (answer.isDropped === true) {
      request.destroy();
      return;
    }
    send(response, answer, call.method === 'HEAD');
  }

  #pause(delayMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#slow.delete(timer);
        resolve();
      }, delayMs);
      this.#slow.add(timer);
    });
  }
}

async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > bodyBytesMax) throw new Error(`a body has at most ${bodyBytesMax} bytes`);
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

function toCall(request: IncomingMessage, body: string): RedfishCall {
  const headers: Record<string, string> = {};
  for (const [name, values] of Object.entries(request.headersDistinct)) {
    if (values !== undefined) headers[name] = values.join(', ');
  }
  return { method: request.method ?? '', target: request.url ?? '', headers, body };
}

function send(response: ServerResponse, answer: RedfishAnswer, withoutBody: boolean): void {
  const bytes = Buffer.from(answer.body);
  const length = answer.status === 204 ? {} : { 'content-length': String(bytes.length) };
  response.writeHead(answer.status, { ...answer.headers, ...length });
  response.end(withoutBody || answer.status === 204 ? undefined : bytes);
}
