/**
 * The DHCP proxy on real sockets: two ports, one decision each packet, an answer at once.
 *
 * X1 Nothing is awaited between a request and its answer, and no packet can stop the next.
 */
import { DecodeError } from '@rackwright/bytes';
import {
  answerBootRequest,
  decodeDhcp,
  encodeDhcp,
  type ProxyService,
  type ProxySettings,
  readBootRequest,
} from '@rackwright/dhcp';
import type { Clock, Log, Udp, UdpPeer, UdpSocket } from '@rackwright/platform';
import type { BootConfig, ProxyDhcpConfig } from './config.ts';
import { LineBudget } from './line-budget.ts';
import type { Gate } from './observation.ts';
import { type BootUrls, loaderPath } from './urls.ts';

export interface DhcpShell {
  readonly dhcpPort: number;
  readonly pxePort: number;
  close(): void;
}

export interface DhcpShellOptions {
  readonly udp: Udp;
  readonly clock: Clock;
  readonly log: Log;
  readonly gate: Gate;
  readonly urls: BootUrls;
  readonly config: BootConfig;
  readonly dhcp: ProxyDhcpConfig;
}

const troubleLinesPerMinuteMax = 30;

export async function startDhcp(options: DhcpShellOptions): Promise<DhcpShell> {
  const shell = new ProxyShell(options);
  const { dhcp, udp } = options;
  const dhcpSocket = await shell.open(udp, 'dhcp', dhcp.address, dhcp.port);
  try {
    const pxeSocket = await shell.open(udp, 'pxe', dhcp.pxeAddress, dhcp.pxePort);
    return {
      dhcpPort: dhcpSocket.local.port,
      pxePort: pxeSocket.local.port,
      close() {
        dhcpSocket.close();
        pxeSocket.close();
      },
    };
  } catch (error) {
    dhcpSocket.close();
    throw error;
  }
}

class ProxyShell {
  readonly #log: Log;
  readonly #gate: Gate;
  readonly #settings: ProxySettings;
  readonly #trouble: LineBudget;

  constructor({ log, gate, clock, urls, config, dhcp }: DhcpShellOptions) {
    this.#log = log;
    this.#gate = gate;
    this.#trouble = new LineBudget(clock, troubleLinesPerMinuteMax, 60_000);
    this.#settings = {
      serverAddress: config.serverAddress,
      loaders: config.loaders,
      scriptUrl: urls.script,
      loaderUrl: urls.hostFile,
      loaderPath,
      broadcastAddress: dhcp.broadcastAddress,
      clientPort: dhcp.clientPort,
      relayPort: dhcp.relayPort,
    };
  }

  async open(udp: Udp, service: ProxyService, address: string, port: number): Promise<UdpSocket> {
    const socket = await udp.bind(
      { address, port, broadcast: true },
      {
        onDatagram: (datagram, from) => this.#receive(socket, service, datagram, from),
        onError: (error) => this.#report({ service, error: error.message }, 'socket error'),
      },
    );
    return socket;
  }

  #receive(socket: UdpSocket, service: ProxyService, datagram: Uint8Array, from: UdpPeer): void {
    try {
      const asked = readBootRequest(decodeDhcp(datagram), service, from);
      if (asked.kind === 'silence') return;
      const { mac } = asked.request;
      const decision = this.#gate(mac, 'dhcp');
      const answer = answerBootRequest(asked.request, decision.kind, this.#settings);
      if (answer.kind === 'silence') {
        this.#log.debug({ mac, reason: answer.reason }, 'boot request not answered');
        return;
      }
      socket.send(encodeDhcp(answer.packet), answer.to);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      this.#report({ service, from: from.address, error: error.message }, 'malformed packet');
    }
  }

  #report(fields: Record<string, string>, message: string): void {
    this.#trouble.spend((suppressed) => this.#log.warn({ ...fields, suppressed }, message));
  }
}
