/**
 * A device that switches a socket over HTTP or HTTPS, on a socket of this machine, with faults on
 * demand. It answers `{"relay": {"on": true}}`.
 */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { selfSigned } from './certificate.ts';

export type SwitchFault =
  | 'none'
  /** Takes every order and carries out none. */
  | 'lying'
  /** Accepts connections and says nothing. */
  | 'silent'
  /** Reports a state that is neither on nor off. */
  | 'unknown'
  /** Redirects each client to another place. */
  | 'redirect'
  /** An answer without end. */
  | 'endless';

export interface SocketSwitchOptions {
  readonly user: string;
  readonly password: string;
  /** The header that it takes the password from; unset: Basic. */
  readonly header?: string;
  readonly plainHttp?: boolean;
  readonly fault?: SwitchFault;
  /** How an order is answered that was carried out: by this status, or without end. */
  readonly orderAnswer?: number | 'endless';
  /** A change shows this much later. */
  readonly delayMs?: number;
  /** Told of every switching. */
  readonly onSwitch?: (on: boolean) => void;
}

export interface SocketSwitch {
  readonly address: string;
  readonly port: number;
  /** Empty by plain HTTP. */
  readonly certificateSha256: string;
  isOn(): boolean;
  switches(): number;
  setFault(fault: SwitchFault): void;
  /** "POST /relay/on", the newest last. */
  calls(): readonly string[];
  close(): Promise<void>;
}

const callsMax = 200;

export async function startSocketSwitch(options: SocketSwitchOptions): Promise<SocketSwitch> {
  const address = '127.0.0.1';
  const certificate =
    options.plainHttp === true ? undefined : await selfSigned('SWITCH-1', address);
  const device = new Device(options);
  const answer = (request: IncomingMessage, response: ServerResponse) =>
    device.answer(request, response);
  const server =
    certificate === undefined
      ? createServer(answer)
      : createTlsServer({ key: certificate.keyPem, cert: certificate.certificatePem }, answer);
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket));
  });
  server.listen({ host: address, port: 0 });
  await once(server, 'listening');
  return {
    address,
    port: (server.address() as AddressInfo).port,
    certificateSha256: certificate?.certificateSha256 ?? '',
    isOn: () => device.isOn,
    switches: () => device.switches,
    setFault: (fault) => {
      device.fault = fault;
    },
    calls: () => device.calls,
    close: async () => {
      server.close();
      for (const socket of sockets) socket.destroy();
      await once(server, 'close');
    },
  };
}

class Device {
  isOn = false;
  switches = 0;
  fault: SwitchFault;
  readonly calls: string[] = [];
  /** The last change shows from here on, milliseconds of `performance.now`. */
  #showsAtMs = 0;
  readonly #options: SocketSwitchOptions;

  constructor(options: SocketSwitchOptions) {
    this.#options = options;
    this.fault = options.fault ?? 'none';
  }

  answer({ method = '', url = '', headers }: IncomingMessage, response: ServerResponse): void {
    this.calls.push(`${method} ${url}`);
    if (this.calls.length > callsMax) this.calls.shift();
    if (this.fault === 'silent') return;
    if (this.fault === 'redirect') {
      response.writeHead(307, { location: 'http://127.0.0.1:1/elsewhere' }).end();
      return;
    }
    if (!this.#knows(headers)) {
      // Like some devices: the shown credential is repeated.
      response.writeHead(401).end(JSON.stringify(headers));
      return;
    }
    if (this.fault === 'endless') return answerWithoutEnd(response);
    const order = method === 'POST' && (url === '/relay/on' || url === '/relay/off');
    if (order) {
      this.#switchTo(url === '/relay/on');
      const { orderAnswer = 200 } = this.#options;
      if (orderAnswer === 'endless') return answerWithoutEnd(response);
      if (orderAnswer !== 200) {
        response.writeHead(orderAnswer, { location: '/elsewhere' }).end('<html>');
        return;
      }
    } else if (method !== 'GET' || url !== '/relay') {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(this.#state());
  }

  #knows(headers: IncomingMessage['headers']): boolean {
    const { user, password, header } = this.#options;
    if (header !== undefined) return headers[header] === password;
    const basic = Buffer.from(`${user}:${password}`).toString('base64');
    return headers.authorization === `Basic ${basic}`;
  }

  #switchTo(on: boolean): void {
    if (this.fault === 'lying' || on === this.isOn) return;
    this.isOn = on;
    this.switches += 1;
    this.#showsAtMs = performance.now() + (this.#options.delayMs ?? 0);
    this.#options.onSwitch?.(on);
  }

  #state(): string {
    if (this.fault === 'unknown') return JSON.stringify({ relay: { on: 'starting' } });
    const isShown = performance.now() >= this.#showsAtMs;
    return JSON.stringify({ relay: { on: isShown ? this.isOn : !this.isOn } });
  }
}

function answerWithoutEnd(response: ServerResponse): void {
  response.writeHead(200);
  const more = (): void => {
    while (!response.destroyed && response.write(Buffer.alloc(65_536, 0x20))) continue;
  };
  response.on('drain', more);
  more();
}
