/**
 * The DHCP side of firmware: gets an address from the site's server and boot parameters from any
 * server that offers them, over broadcasts, as PXE 2.1 §2.4 describes it for a proxy.
 *
 * D1 An answer counts only with our transaction and our hardware address: others boot meanwhile.
 * D2 Every wait has an end; without an offer of an address there is no boot.
 */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { DecodeError } from '@rackwright/bytes';
import {
  type DhcpPacket,
  decodeDhcp,
  dhcpOption,
  encodeDhcp,
  readOption,
  writeOption,
} from '@rackwright/dhcp';
import {
  architectureOf,
  type BootIdentity,
  type BootNetwork,
  type FirmwareForm,
} from './network.ts';

/** The client: the firmware itself, or the iPXE that it has started. */
export type FirmwareBootStage = 'firmware' | 'ipxe';

export interface BootParameters {
  /** Ours, from the address server. */
  readonly address: string;
  /** Undefined when nobody offers a boot: the machine goes on to its disk. */
  readonly boot: BootOffer | undefined;
}

export interface BootOffer {
  readonly serverAddress: string;
  /** A TFTP name or a URL. */
  readonly fileName: string;
}

/** How long offers are collected, at each attempt; PXE firmware doubles its waits as well. */
const discoverWaitsMs = [400, 800, 1_600, 3_200, 6_400] as const;
/** From the first offer of an address to the last one of a boot; iPXE waits about as long. */
const proxyWaitMs = 2_000;
const answerWaitMs = 1_000;
const requestAttemptsMax = 4;
/** Broadcasts of neighbours fill a queue too; only the newest count. */
const arrivedMax = 256;
const messageBytesMax = 1_472;

/** One machine's network card, open from power-on to power-off. */
export class DhcpClient {
  readonly #network: BootNetwork;
  readonly #identity: BootIdentity;
  readonly #form: FirmwareForm;
  readonly #socket: Socket;
  #arrived: DhcpPacket[] = [];
  #wake: () => void = () => {};
  #transaction: number;

  private constructor(
    network: BootNetwork,
    identity: BootIdentity,
    form: FirmwareForm,
    socket: Socket,
  ) {
    this.#network = network;
    this.#identity = identity;
    this.#form = form;
    this.#socket = socket;
    // PXE takes the last bytes of the MAC for its first transaction, so that neighbours differ.
    this.#transaction = Number.parseInt(identity.mac.replaceAll(':', '').slice(4), 16);
    socket.on('message', (datagram) => this.#receive(datagram));
  }

  static async open(
    network: BootNetwork,
    identity: BootIdentity,
    form: FirmwareForm,
  ): Promise<DhcpClient> {
    const socket = await boundSocket(network.broadcastAddress, network.clientPort);
    socket.setBroadcast(true);
    return new DhcpClient(network, identity, form, socket);
  }

  /** Discover, offers, request, acknowledgement. Throws when no server gives an address. */
  async acquire(stage: FirmwareBootStage): Promise<BootParameters> {
    const { lease, boot } = await this.#discover(stage);
    const { dhcpPort, broadcastAddress } = this.#network;
    const leaseServer = readOption(lease, dhcpOption.serverIdentifier) ?? '';
    const request = this.#packet(stage, 'request', [
      writeOption(dhcpOption.requestedAddress, lease.yourAddress),
      writeOption(dhcpOption.serverIdentifier, leaseServer),
    ]);
    for (let attempt = 0; attempt < requestAttemptsMax; attempt += 1) {
      this.#send(request, broadcastAddress, dhcpPort);
      const answer = await this.#await(answerWaitMs, isAcknowledgement);
      if (answer === undefined) continue;
      return { address: answer.yourAddress, boot: boot === undefined ? boot : offerOf(boot) };
    }
    throw new Error(`${leaseServer} offered ${lease.yourAddress} and did not confirm it`);
  }

  /**
   * Asks the boot server's own port for the boot file, from our address, as UEFI PXE does.
   * Undefined when it does not answer.
   */
  async askBootServer(address: string, server: string): Promise<BootOffer | undefined> {
    const socket = await boundSocket(address, this.#network.clientPort);
    socket.on('message', (datagram) => this.#receive(datagram));
    try {
      const request = this.#packet('firmware', 'request', [], address);
      for (let attempt = 0; attempt < requestAttemptsMax; attempt += 1) {
        socket.send(encodeDhcp(request), this.#network.pxePort, server);
        const answer = await this.#await(answerWaitMs, isAcknowledgement);
        if (answer !== undefined) return offerOf(answer);
      }
      return undefined;
    } finally {
      socket.close();
    }
  }

  close(): void {
    this.#socket.close();
  }

  async #discover(
    stage: FirmwareBootStage,
  ): Promise<{ lease: DhcpPacket; boot: DhcpPacket | undefined }> {
    let lease: DhcpPacket | undefined;
    let boot: DhcpPacket | undefined;
    let giveUpAtMs = Number.POSITIVE_INFINITY;
    this.#transaction = (this.#transaction + 1) >>> 0;
    const request = this.#packet(stage, 'discover', []);
    for (const waitMs of discoverWaitsMs) {
      this.#send(request, this.#network.broadcastAddress, this.#network.dhcpPort);
      const askAgainAtMs = Date.now() + waitMs;
      while (lease === undefined || boot === undefined) {
        const leftMs = Math.min(askAgainAtMs, giveUpAtMs) - Date.now();
        const offer = await this.#await(leftMs, isOffer);
        if (offer === undefined) break;
        if (offer.yourAddress !== '0.0.0.0' && lease === undefined) {
          lease = offer;
          giveUpAtMs = Date.now() + proxyWaitMs;
        }
        if (offersBoot(offer)) boot ??= offer;
      }
      if (lease !== undefined && (boot !== undefined || Date.now() >= giveUpAtMs)) break;
    }
    if (lease === undefined) throw new Error('no DHCP server offered an address');
    return { lease, boot };
  }

  #packet(
    stage: FirmwareBootStage,
    messageType: 'discover' | 'request',
    more: readonly (readonly [number, Uint8Array])[],
    clientAddress = '0.0.0.0',
  ): DhcpPacket {
    const architecture = architectureOf[this.#form];
    const scheme = this.#form === 'uefiHttp' && stage === 'firmware' ? 'HTTPClient' : 'PXEClient';
    const vendorClass = `${scheme}:Arch:${String(architecture).padStart(5, '0')}:UNDI:003016`;
    return {
      op: 'request',
      hardwareType: 1,
      hops: 0,
      transactionId: this.#transaction,
      seconds: 0,
      // Until we have an address, answers can only be broadcast.
      flags: clientAddress === '0.0.0.0' ? 0x8000 : 0,
      clientAddress,
      yourAddress: '0.0.0.0',
      nextServerAddress: '0.0.0.0',
      relayAddress: '0.0.0.0',
      hardwareAddress: Buffer.from(this.#identity.mac.replaceAll(':', ''), 'hex'),
      serverName: '',
      bootFile: '',
      options: new Map([
        writeOption(dhcpOption.messageType, messageType),
        writeOption(dhcpOption.messageBytesMax, messageBytesMax),
        writeOption(dhcpOption.parameterList, [1, 3, 6, 43, 60, 66, 67]),
        writeOption(dhcpOption.vendorClass, vendorClass),
        writeOption(dhcpOption.architectures, [architecture]),
        writeOption(dhcpOption.networkInterface, { type: 1, major: 3, minor: 16 }),
        writeOption(dhcpOption.machineIdentifier, {
          type: 0,
          bytes: Buffer.from(this.#identity.uuid, 'hex'),
        }),
        ...(stage === 'ipxe' ? ipxeOptions() : []),
        ...more,
      ]),
    };
  }

  #send(packet: DhcpPacket, address: string, port: number): void {
    this.#socket.send(encodeDhcp(packet), port, address);
  }

  #receive(datagram: Uint8Array): void {
    try {
      const packet = decodeDhcp(datagram);
      if (packet.op !== 'reply' || packet.transactionId !== this.#transaction) return;
      if (hexOf(packet.hardwareAddress) !== this.#identity.mac.replaceAll(':', '')) return;
      this.#arrived = [...this.#arrived, packet].slice(-arrivedMax);
      this.#wake();
    } catch (error) {
      // An unreadable packet was not meant for us (D1).
      if (!(error instanceof DecodeError)) throw error;
    }
  }

  /** The next packet of the wanted kind; others of ours are dropped. Undefined when time is up. */
  async #await(
    waitMs: number,
    wanted: (packet: DhcpPacket) => boolean,
  ): Promise<DhcpPacket | undefined> {
    const endMs = Date.now() + waitMs;
    for (;;) {
      const packet = this.#arrived.shift();
      if (packet !== undefined) {
        if (wanted(packet)) return packet;
        continue;
      }
      const leftMs = endMs - Date.now();
      if (leftMs <= 0) return undefined;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }
}

async function boundSocket(address: string, port: number): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true });
  const listening = once(socket, 'listening');
  socket.bind(port, address);
  await listening;
  // A packet that cannot be sent is sent again, or the boot fails with its own words (D2).
  socket.on('error', () => {});
  return socket;
}

function isOffer(packet: DhcpPacket): boolean {
  return readOption(packet, dhcpOption.messageType) === 'offer';
}

function offersBoot(packet: DhcpPacket): boolean {
  return packet.bootFile !== '' || packet.options.has(dhcpOption.bootFileName.code);
}

function isAcknowledgement(packet: DhcpPacket): boolean {
  return readOption(packet, dhcpOption.messageType) === 'ack';
}

/** HTTP boot reads its URL from the option, PXE the name from the field. */
function offerOf(packet: DhcpPacket): BootOffer {
  const named = readOption(packet, dhcpOption.bootFileName);
  return { serverAddress: packet.nextServerAddress, fileName: named ?? packet.bootFile };
}

/** iPXE's user class in its plain form, and its features: TFTP, HTTP, kernels, menus. */
function ipxeOptions(): (readonly [number, Uint8Array])[] {
  const feature = (code: number) => [code, Uint8Array.of(1)] as const;
  return [
    writeOption(dhcpOption.userClass, { form: 'plain', classes: ['iPXE'] }),
    writeOption(dhcpOption.ipxe, [18, 19, 24, 39].map(feature)),
  ];
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('hex');
}
