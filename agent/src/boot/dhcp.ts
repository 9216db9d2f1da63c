/**
 * DHCP on real sockets: two ports, one decision each packet, an answer at once. The DHCP port is
 * the proxy's or the server's. The PXE port always belongs to the proxy's half, because its answers
 * give no address.
 *
 * X1 Nothing is awaited between a request and its answer, and no packet can stop the next.
 */
import { DecodeError } from '@rackwright/bytes';
import {
  answerBootRequest,
  decodeDhcp,
  encodeDhcp,
  type Mac,
  type ProxyService,
  type ProxySettings,
  readBootRequest,
  readServerRequest,
  type ServerRequest,
} from '@rackwright/dhcp';
import {
  type Clock,
  type Disk,
  type Log,
  problemText,
  type Udp,
  type UdpPeer,
  type UdpSocket,
} from '@rackwright/platform';
import type { BootEvents } from './boot-events.ts';
import { addressPlanOf, type ProxyDhcpConfig, type ReservationDhcpConfig } from './dhcp-config.ts';
import { type DhcpFault, DhcpServer } from './dhcp-server.ts';
import { IgnoredOptions } from './ignored-options.ts';
import { type LineBudget, troubleBudget } from './line-budget.ts';
import type { BootMemory } from './memory.ts';
import type { BootMeter } from './meter.ts';
import type { AddressWatch, BootGate } from './observation.ts';
import { permissionOf } from './permission.ts';
import type { Loaders } from './profiles.ts';
import { RaspberryPiRequests } from './raspberry-pi.ts';
import { type BootUrls, loaderPath } from './urls.ts';

export interface DhcpShell {
  readonly dhcpPort: number;
  readonly pxePort: number;
  close(): Promise<void>;
}

export interface DhcpShellOptions {
  readonly udp: Udp;
  readonly disk: Disk;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootGate: BootGate;
  readonly bootEvents: BootEvents;
  readonly sawAddress: AddressWatch;
  readonly memory: () => BootMemory;
  readonly onFault: (fault: DhcpFault) => void;
  readonly onServerGone: (serverAddress: string) => void;
  readonly urls: BootUrls;
  /** The boot loaders of the host with this MAC; undefined: it boots nothing (profiles.ts, P1). */
  readonly loadersOf: (mac: Mac) => Loaders | undefined;
  /** Our address as hosts on this interface get it. */
  readonly serverAddress: string;
  /** The interface that the sockets are bound to; absent: any. */
  readonly interface?: string;
  readonly dhcp: ProxyDhcpConfig | ReservationDhcpConfig;
  /** Whether there are files for a Raspberry Pi's firmware. */
  readonly servesRaspberryPi: boolean;
  readonly meter?: BootMeter;
}

/**
 * Room for a rack that is switched on at once while this program is busy: 1,000 packets of 4 KiB. A
 * network card's driver may use that much for each packet, even a short one.
 */
const receiveBytes = 4 * 1024 * 1024;

export async function startDhcp(options: DhcpShellOptions): Promise<DhcpShell> {
  const { dhcp, udp } = options;
  const shell = new Shell(options);
  const proxy = new ProxyAnswers(options);
  const server = dhcp.mode === 'reservation' ? await openServer(options, dhcp) : undefined;
  const onDhcp: Receive =
    server === undefined
      ? (...arrived) => proxy.receive('dhcp', ...arrived)
      : (...arrived) => server.receive(...arrived);
  const dhcpSocket = await shell.open(udp, 'dhcp', dhcp.address, dhcp.port, onDhcp);
  try {
    const onPxe: Receive = (...arrived) => proxy.receive('pxe', ...arrived);
    const pxeSocket = await shell.open(udp, 'pxe', dhcp.pxeAddress, dhcp.pxePort, onPxe);
    server?.probe(dhcpSocket);
    return {
      dhcpPort: dhcpSocket.local.port,
      pxePort: pxeSocket.local.port,
      async close() {
        dhcpSocket.close();
        pxeSocket.close();
        await server?.close();
      },
    };
  } catch (error) {
    dhcpSocket.close();
    throw error;
  }
}

type Receive = (socket: UdpSocket, datagram: Uint8Array, from: UdpPeer) => void;

function openServer(options: DhcpShellOptions, dhcp: ReservationDhcpConfig): Promise<DhcpServer> {
  const {
    disk,
    clock,
    log,
    bootGate,
    bootEvents,
    sawAddress,
    memory,
    onFault,
    onServerGone,
    serverAddress,
  } = options;
  const made = addressPlanOf(dhcp, serverAddress);
  if (made.kind === 'bad') {
    throw new Error(`boot configuration: dhcp.${problemText(made.problem)}`);
  }
  const plan = made.value;
  const { leaseSeconds, routers, dnsServers, domainName } = dhcp.subnet;
  const subnet = { leaseSeconds, routers, nameServers: dnsServers };
  const settings = {
    ...proxySettings(options),
    plan,
    subnet: domainName === undefined ? subnet : { ...subnet, domainName },
    declinedMs: dhcp.declinedMs,
  };
  const paths = { path: dhcp.leasesPath, formerPath: dhcp.formerLeasesPath };
  return DhcpServer.open({
    disk,
    clock,
    log,
    ...paths,
    bootGate,
    bootEvents,
    sawAddress,
    memory,
    onFault,
    onServerGone,
    settings,
    dhcp,
    ...(options.meter === undefined ? {} : { meter: options.meter }),
  });
}

function proxySettings(options: DhcpShellOptions): ProxySettings {
  const { urls, loadersOf, serverAddress, servesRaspberryPi, dhcp } = options;
  return {
    serverAddress,
    loadersOf,
    scriptUrl: urls.script,
    loaderUrl: urls.hostFile,
    loaderPath,
    servesRaspberryPi,
    broadcastAddress: dhcp.broadcastAddress,
    clientPort: dhcp.clientPort,
    relayPort: dhcp.relayPort,
  };
}

class Shell {
  readonly #log: Log;
  readonly #interface: { readonly interface?: string };
  readonly #trouble: LineBudget;
  readonly #meter: BootMeter | undefined;

  constructor({ log, clock, meter, interface: name }: DhcpShellOptions) {
    this.#log = log;
    this.#meter = meter;
    this.#interface = name === undefined ? {} : { interface: name };
    this.#trouble = troubleBudget(clock);
  }

  async open(
    udp: Udp,
    service: ProxyService,
    address: string,
    port: number,
    receive: Receive,
  ): Promise<UdpSocket> {
    const socket = await udp.bind(
      { address, port, broadcast: true, receiveBytes, ...this.#interface },
      {
        onDatagram: (datagram, from, at) => {
          try {
            receive(at, datagram, from);
          } catch (error) {
            if (!(error instanceof DecodeError)) throw error;
            this.#report({ service, from: from.address }, 'malformed packet', error);
          }
        },
        onError: (error) => this.#report({ service }, 'socket error', error),
      },
    );
    this.#tellRoom(service, socket.receiveBytes);
    return socket;
  }

  /** Packets beyond the buffer are lost silently: the hosts ask again seconds later. */
  #tellRoom(service: ProxyService, granted: number | undefined): void {
    if (granted === undefined) return;
    const fields = { service, receiveBytes: granted, wanted: receiveBytes };
    if (granted >= receiveBytes) return this.#log.debug(fields, 'room for packets that wait');
    const text =
      'less room for packets that wait than a rack needs that is switched on at once: ' +
      'raise net.core.rmem_max, or ReceiveBuffer= of the socket unit';
    this.#log.warn(fields, text);
  }

  #report(fields: Record<string, string>, message: string, error?: unknown): void {
    this.#meter?.dhcpTrouble();
    this.#trouble.spend((suppressed) => this.#log.warn({ ...fields, suppressed }, message, error));
  }
}

class ProxyAnswers {
  readonly #log: Log;
  readonly #bootGate: BootGate;
  readonly #bootEvents: BootEvents;
  readonly #sawAddress: AddressWatch;
  readonly #settings: ProxySettings;
  readonly #ignored: IgnoredOptions;
  readonly #meter: BootMeter | undefined;
  readonly #givesAddresses: boolean;
  readonly #raspberryPis: RaspberryPiRequests;

  constructor(options: DhcpShellOptions) {
    this.#givesAddresses = options.dhcp.mode === 'reservation';
    this.#raspberryPis = new RaspberryPiRequests(options.clock);
    this.#log = options.log;
    this.#meter = options.meter;
    this.#ignored = new IgnoredOptions(options);
    this.#bootGate = options.bootGate;
    this.#bootEvents = options.bootEvents;
    this.#sawAddress = options.sawAddress;
    this.#settings = proxySettings(options);
  }

  /** Throws DecodeError when the datagram is no DHCP packet. */
  receive(service: ProxyService, socket: UdpSocket, datagram: Uint8Array, from: UdpPeer): void {
    const packet = decodeDhcp(datagram);
    const received = readBootRequest(packet, service, from);
    if (received.kind === 'silence') {
      const other = readServerRequest(packet, from);
      if (this.#isBySystem(other)) this.#sawAddress(other.request.mac);
      return;
    }
    const { mac, ignored, client } = received.request;
    if (client.kind === 'raspberryPi' && this.#settings.servesRaspberryPi) {
      this.#raspberryPis.discovered(mac, packet.transactionId);
    }
    this.#ignored.tell(mac, ignored);
    const decision = this.#bootGate(mac, 'dhcp');
    const answer = answerBootRequest(received.request, permissionOf(decision), this.#settings);
    this.#meter?.dhcpAsked('proxy', answer.kind !== 'silence');
    this.#bootEvents.dhcp(decision, {
      mac,
      messageType: service === 'dhcp' ? 'discover' : 'request',
      client: client.kind,
      givesAddresses: this.#givesAddresses,
      isGranted: answer.kind !== 'silence',
      problem: answer.kind === 'silence' ? answer.reason : '',
    });
    if (answer.kind === 'silence') {
      this.#log.debug({ mac, reason: answer.reason }, 'boot request not answered');
      return;
    }
    socket.send(encodeDhcp(answer.packet), answer.to);
  }

  /** Whether the request is for an address only, from a running system, and not for a boot. */
  #isBySystem(
    read: ReturnType<typeof readServerRequest>,
  ): read is { readonly kind: 'asked'; readonly request: ServerRequest } {
    if (read.kind !== 'asked') return false;
    return this.#raspberryPis.recognise(read.request).boot === undefined;
  }
}
