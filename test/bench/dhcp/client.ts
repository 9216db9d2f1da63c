/**
 * A DHCP client for measurements: a relay behind which a rack of hosts boots, with as little work
 * for each packet as possible. A relay's answers come to one socket, from any server.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type DhcpPacket, dhcpOption, encodeDhcp, writeOption } from '@rackwright/dhcp';

export interface Server {
  readonly address: string;
  readonly port: number;
}

/** What firmware of host `index` asks: a PXE client of UEFI. */
export function discoverOf(index: number, relayAddress: string): Uint8Array {
  const machine = new Uint8Array(16).fill(index);
  return encodeDhcp({
    ...request(index, relayAddress),
    options: new Map([
      writeOption(dhcpOption.messageType, 'discover'),
      writeOption(dhcpOption.messageBytesMax, 1_472),
      writeOption(dhcpOption.parameterList, asked),
      writeOption(dhcpOption.machineIdentifier, { type: 0, bytes: machine }),
      writeOption(dhcpOption.networkInterface, { type: 1, major: 3, minor: 16 }),
      writeOption(dhcpOption.architectures, [7]),
      writeOption(dhcpOption.vendorClass, 'PXEClient:Arch:00007:UNDI:003016'),
    ]),
  });
}

/** As UEFI firmware asks for them. */
const asked = [
  1, 2, 3, 4, 5, 6, 12, 13, 15, 17, 18, 22, 23, 28, 40, 41, 42, 43, 50, 51, 54, 58,
].concat([59, 60, 66, 67, 97, 128, 129, 130, 131, 132, 133, 134, 135]);

export function macOf(index: number): string {
  return Array.from(macBytes(index), (byte) => byte.toString(16).padStart(2, '0')).join(':');
}

function macBytes(index: number): Uint8Array {
  return Uint8Array.of(0x52, 0x54, 0x00, 0x77, index >> 8, index & 0xff);
}

function request(index: number, relayAddress: string): Omit<DhcpPacket, 'options'> {
  const unset = '0.0.0.0';
  return {
    ...{ op: 'request', hardwareType: 1, hops: 1, transactionId: index, seconds: 0, flags: 0x8000 },
    ...{ clientAddress: unset, yourAddress: unset, nextServerAddress: unset, relayAddress },
    ...{ hardwareAddress: macBytes(index), serverName: '', bootFile: '' },
  };
}

/** Positions in a packet of BOOTP (RFC 951). */
const at = { transactionId: 4, yourAddress: 16, options: 240 } as const;
const code = { requestedAddress: 50, messageType: 53, serverIdentifier: 54, end: 255 } as const;
const type = { request: 3 } as const;

/** The request for what an offer offers, made of the discover; the option of its type is first. */
export function requestFor(discover: Uint8Array, offer: Uint8Array): Uint8Array {
  const optionsEnd = discover.lastIndexOf(code.end);
  const server = optionOf(offer, code.serverIdentifier);
  const bytes = Buffer.alloc(Math.max(300, optionsEnd + 13));
  bytes.set(discover.subarray(0, optionsEnd));
  bytes[at.options + 2] = type.request;
  bytes.set([code.requestedAddress, 4], optionsEnd);
  bytes.set(offer.subarray(at.yourAddress, at.yourAddress + 4), optionsEnd + 2);
  bytes.set([code.serverIdentifier, 4], optionsEnd + 6);
  bytes.set(server, optionsEnd + 8);
  bytes[optionsEnd + 12] = code.end;
  return bytes;
}

function optionOf(packet: Uint8Array, wanted: number): Uint8Array {
  for (let index = at.options; index + 1 < packet.length; ) {
    const found = packet[index] ?? code.end;
    if (found === code.end) break;
    const length = packet[index + 1] ?? 0;
    if (found === wanted) return packet.subarray(index + 2, index + 2 + length);
    index += found === 0 ? 1 : 2 + length;
  }
  throw new Error(`an answer without option ${wanted}`);
}

/** How long a host waits before it asks again; that it had to counts as a packet that was lost. */
const retryMs = 1_000;

export interface Boots {
  readonly exchanges: number;
  /** Questions that were asked again. */
  readonly retries: number;
  /** Of each exchange, from its first discover to its ack. */
  readonly latenciesMs: readonly number[];
}

interface Exchange {
  readonly discover: Uint8Array;
  readonly startedMs: number;
  sent: Uint8Array;
  sentMs: number;
  isBound: boolean;
}

/** The hosts behind one relay. */
export class RelayedHosts {
  readonly #socket: Socket;
  readonly server: Server;
  /** Questions of single exchanges that were asked again. */
  retries = 0;
  readonly #waiting = new Map<number, (latencyMs: number) => void>();
  #timer: NodeJS.Timeout | undefined;
  readonly #discovers: readonly Buffer[];
  readonly #underWay = new Map<number, Exchange>();
  #nextTransaction = 1;

  /** `relay`: where the server sends its answers; shared with dnsmasq, which has all addresses. */
  static async open(relay: Server, server: Server, hosts: number): Promise<RelayedHosts> {
    const socket = createSocket({
      type: 'udp4',
      reuseAddr: true,
      recvBufferSize: 4 * 1024 * 1024,
      lookup: (name, _options, found) => found(null, name, 4),
    });
    const listening = once(socket, 'listening');
    socket.bind(relay.port, relay.address);
    await listening;
    const discovers = Array.from({ length: hosts }, (_, index) => {
      return Buffer.from(discoverOf(index, relay.address));
    });
    return new RelayedHosts(socket, server, discovers);
  }

  private constructor(socket: Socket, server: Server, discovers: readonly Buffer[]) {
    this.#socket = socket;
    this.server = server;
    this.#discovers = discovers;
  }

  close(): void {
    clearInterval(this.#timer);
    this.#socket.close();
  }

  /** Runs `exchanges` four-way exchanges, `atOnce` of them at any time, host after host. */
  run(exchanges: number, atOnce: number): Promise<Boots> {
    const latenciesMs: number[] = [];
    let [begun, retries] = [0, 0];
    return new Promise((resolve) => {
      const timer = setInterval(() => {
        retries += this.#askAgain();
      }, 100);
      const begin = (): void => {
        this.#begin(begun % this.#discovers.length);
        begun += 1;
      };
      const onMessage = (answer: Buffer): void => {
        const latencyMs = this.#hear(answer);
        if (latencyMs === undefined) return;
        latenciesMs.push(latencyMs);
        if (begun < exchanges) begin();
        if (latenciesMs.length < exchanges) return;
        clearInterval(timer);
        this.#socket.off('message', onMessage);
        resolve({ exchanges, retries, latenciesMs });
      };
      this.#socket.on('message', onMessage);
      for (let index = 0; index < Math.min(atOnce, exchanges); index += 1) begin();
    });
  }

  /** One four-way exchange of this host, however often it has to ask; answers how long it took. */
  exchange(host: number): Promise<number> {
    if (this.#timer === undefined) {
      this.#timer = setInterval(() => {
        this.retries += this.#askAgain();
      }, 100);
      this.#socket.on('message', (answer) => {
        const latencyMs = this.#hear(answer);
        const transaction = answer.readUInt32BE(at.transactionId);
        if (latencyMs !== undefined) this.#waiting.get(transaction)?.(latencyMs);
      });
    }
    const transaction = this.#begin(host);
    return new Promise((resolve) => {
      this.#waiting.set(transaction, (latencyMs) => {
        this.#waiting.delete(transaction);
        resolve(latencyMs);
      });
    });
  }

  /**
   * Sends a discover of each of `discovers` hosts, all in one go and none twice; answers how many
   * were answered when nothing has come for a second, and how long it took to send them.
   */
  burst(discovers: number): Promise<{ readonly answered: number; readonly sentInMs: number }> {
    const answered = new Set<number>();
    const startedMs = performance.now();
    for (let index = 0; index < discovers; index += 1) {
      const discover = Buffer.from(this.#discovers[index % this.#discovers.length] ?? []);
      discover.writeUInt32BE(this.#nextTransaction, at.transactionId);
      this.#nextTransaction += 1;
      this.#socket.send(discover, this.server.port, this.server.address);
    }
    const sentInMs = performance.now() - startedMs;
    return new Promise((resolve) => {
      const onMessage = (answer: Buffer): void => {
        answered.add(answer.readUInt32BE(at.transactionId));
        silence.refresh();
      };
      const silence = setTimeout(() => {
        this.#socket.off('message', onMessage);
        resolve({ answered: answered.size, sentInMs });
      }, 1_000);
      this.#socket.on('message', onMessage);
    });
  }

  /** Answers the number of its transaction. */
  #begin(host: number): number {
    const transaction = this.#nextTransaction;
    this.#nextTransaction += 1;
    const discover = Buffer.from(this.#discovers[host] ?? []);
    discover.writeUInt32BE(transaction, at.transactionId);
    const nowMs = performance.now();
    const exchange = { discover, startedMs: nowMs, sent: discover, sentMs: nowMs, isBound: false };
    this.#underWay.set(transaction, exchange);
    this.#send(exchange, discover);
    return transaction;
  }

  #send(exchange: Exchange, bytes: Uint8Array): void {
    exchange.sent = bytes;
    exchange.sentMs = performance.now();
    this.#socket.send(bytes, this.server.port, this.server.address);
  }

  /** The time of an exchange that this answer has ended. */
  #hear(answer: Buffer): number | undefined {
    const transaction = answer.readUInt32BE(at.transactionId);
    const exchange = this.#underWay.get(transaction);
    const kind = answer[at.options + 2];
    if (exchange === undefined) return undefined;
    if (kind === 2 && !exchange.isBound) {
      exchange.isBound = true;
      this.#send(exchange, requestFor(exchange.discover, answer));
    }
    if (kind === 6) throw new Error('the server refuses what it has offered');
    if (kind !== 5) return undefined;
    this.#underWay.delete(transaction);
    return performance.now() - exchange.startedMs;
  }

  #askAgain(): number {
    const nowMs = performance.now();
    let asked = 0;
    for (const exchange of this.#underWay.values()) {
      if (nowMs - exchange.sentMs < retryMs) continue;
      this.#send(exchange, exchange.sent);
      asked += 1;
    }
    return asked;
  }
}
