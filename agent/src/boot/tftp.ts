/**
 * The TFTP server on real sockets: one socket per transfer, as RFC 1350 §4 wants; every decision is
 * `@rackwright/tftp`'s.
 *
 * Y0 A request is answered from the address that it was sent to: a client may drop an answer from
 *    another address. Where a datagram does not carry its destination, a transfer listens at all
 *    addresses that it may have been sent to, and goes on from the one that the client addresses.
 * Y1 A request is decided on at once, from memory; opening its socket is the only wait.
 * Y2 A packet from a stranger's port does not disturb the transfer (RFC 1350 §4). A transfer's
 *    socket is connected to its client, so the kernel tells the stranger that nobody has the port:
 *    the ERROR 5 that the section recommends would take a second socket for each transfer.
 * Y3 Each transfer's sockets and its deadline are gone when it has ended.
 * Y4 The single port is for a firewall that lets nothing else through. All datagrams are sent from
 *    the socket that received the request, and only the client's address and port tell which
 *    transfer a datagram belongs to. A new request from a client's port ends the transfer to that
 *    port. Late datagrams of the earlier transfer do not enter the new one (used-ports.ts). Such a
 *    socket gets no error when a client is gone: the transfer ends by timeout.
 */
import type { Mac } from '@rackwright/dhcp';
import type { Clock, Log, LogFields, Udp, UdpPeer, UdpSocket } from '@rackwright/platform';
import {
  decideRequest,
  type FileLookup,
  isReadRequest,
  type RequestDecision,
  type TftpLimits,
  type TransferEnd,
  tftpError,
  UsedPorts,
} from '@rackwright/tftp';
import { type BootEvents, type BootFileTransfer, scriptName } from './boot-events.ts';
import { anyAddress, type TransferPorts } from './config.ts';
import { Deadlines } from './deadlines.ts';
import type { FindImageBlob, ServedFile } from './files.ts';
import { grubStartScript } from './grub-script.ts';
import type { KeptFiles } from './kept-files.ts';
import { type LineBudget, troubleBudget } from './line-budget.ts';
import type { BootMeter } from './meter.ts';
import type { BootGate } from './observation.ts';
import { mayStartRunner } from './permission.ts';
import type { RaspberryPiFiles } from './raspberry-pi.ts';
import type { BootScripts, ScriptLanguage } from './scripts.ts';
import { ActiveTransfer } from './tftp-transfer.ts';
import { uBootImage } from './u-boot-image.ts';
import { uBootStartScript } from './u-boot-script.ts';
import { type BootUrls, parseTftpName } from './urls.ts';

/** The address and port that receive requests. */
export interface TftpListen {
  readonly address: string;
  readonly port: number;
  /** The interface that the socket is bound to; absent: any. */
  readonly interface?: string;
  /**
   * What transfers send from: the address that clients were given, which is not always that of the
   * interface that their answers leave by.
   */
  readonly transferAddress: string;
}

export interface TftpShellOptions {
  readonly udp: Udp;
  readonly clock: Clock;
  readonly log: Log;
  readonly bootGate: BootGate;
  readonly bootEvents: BootEvents;
  readonly loaders: ReadonlyMap<string, Uint8Array>;
  /** Undefined: there are none. */
  readonly raspberryPi: RaspberryPiFiles | undefined;
  readonly scripts: BootScripts;
  /**
   * The URLs for a client that has asked at this address of ours. Undefined: clients are not given
   * this address.
   */
  readonly urlsAt: (localAddress: string) => BootUrls | undefined;
  /** Files by name, for GRUB and U-Boot: kernel and ramdisk. */
  readonly files: ReadonlyMap<string, ServedFile>;
  readonly kept: KeptFiles;
  /** Blobs of images by the hex of their SHA-256; absent: none are served. */
  readonly imageBlob?: FindImageBlob;
  /** At least one. The limits are for all of them together. */
  readonly listens: readonly TftpListen[];
  readonly limits: TftpLimits;
  /** `single`: all is sent from the port that receives requests (Y4). */
  readonly transferPorts: TransferPorts;
  readonly meter?: BootMeter;
  /** The machine's present IPv4 addresses by their interface; absent: unknown. */
  readonly ownAddresses?: () => ReadonlyMap<string, readonly string[]>;
}

export interface TftpShell {
  /** The first one's. */
  readonly port: number;
  /** Transfers under way. */
  readonly transfers: number;
  close(): void;
}

/** Sockets of one port, and of one transfer. */
const addressesMax = 8;
/** How late a transfer may notice that its client is silent. */
const tickMs = 100;

export async function startTftp(options: TftpShellOptions): Promise<TftpShell> {
  const server = new TftpServer(options);
  const sockets: UdpSocket[] = [];
  const close = (): void => {
    for (const socket of sockets) socket.close();
    server.close();
  };
  try {
    for (const listen of options.listens)
      sockets.push(...(await listenAt(options, listen, server)));
  } catch (error) {
    close();
    throw error;
  }
  return {
    port: sockets[0]?.local.port ?? 0,
    get transfers() {
      return server.transfers;
    },
    close,
  };
}

/** The socket of the port; and, where that is for all addresses, one for each of ours (Y0). */
async function listenAt(
  { udp, ownAddresses }: TftpShellOptions,
  { transferAddress, ...listen }: TftpListen,
  server: TftpServer,
): Promise<UdpSocket[]> {
  const onError = (error: Error) => server.report({}, 'TFTP socket error', error);
  const own = (): readonly string[] => {
    const all = ownAddresses?.() ?? new Map<string, readonly string[]>();
    const names = listen.interface === undefined ? [...all.keys()] : [listen.interface];
    const others = names.flatMap((name) => all.get(name) ?? []);
    return [...new Set([transferAddress, ...others])].slice(0, addressesMax);
  };
  const handlers = (addresses: () => readonly string[]) => ({
    onDatagram: (datagram: Uint8Array, from: UdpPeer, at: UdpSocket) =>
      server.receive(at, datagram, from, addresses()),
    onError,
  });
  if (listen.address !== anyAddress)
    return [
      await udp.bind(
        listen,
        handlers(() => [transferAddress]),
      ),
    ];
  if (listen.interface !== undefined) return [await udp.bind(listen, handlers(own))];
  let apart = 0;
  const rest = () => (apart > 0 ? [anyAddress] : own());
  const all = await udp.bind({ ...listen, share: 'begin' }, handlers(rest));
  const { port } = all.local;
  const each = own().map(async (address) => {
    const one = handlers(() => [address]);
    // Nobody else can open a low port that was handed to us: Y0 then holds as far as possible.
    return udp.bind({ address, port, share: 'join' }, one).catch((error: unknown) => {
      server.report({ address, port }, 'TFTP answers for this address by the shared socket', error);
    });
  });
  const sockets = (await Promise.all(each)).filter((one) => one !== undefined);
  apart = sockets.length;
  return [all, ...sockets];
}

class TftpServer {
  readonly #options: TftpShellOptions;
  readonly #trouble: LineBudget;
  readonly #active = new Set<ActiveTransfer>();
  /** The latest transfer of each client's address and port, and how many each address has; by what
   * transfers are sent from, as clients of two networks may have one address. */
  readonly #latest = new Map<string, ActiveTransfer>();
  readonly #perClient = new Map<string, number>();
  readonly #deadlines: Deadlines;
  /** Undefined: each transfer has a port of its own. */
  readonly #usedPorts: UsedPorts | undefined;
  #closed = false;

  constructor(options: TftpShellOptions) {
    this.#options = options;
    this.#trouble = troubleBudget(options.clock);
    this.#deadlines = new Deadlines(options.clock, tickMs);
    this.#usedPorts = options.transferPorts === 'single' ? new UsedPorts() : undefined;
  }

  get transfers(): number {
    return this.#active.size;
  }

  /** `addresses`: those of ours that it may have been sent to, the likeliest first. */
  receive(
    socket: UdpSocket,
    datagram: Uint8Array,
    from: UdpPeer,
    addresses: readonly string[],
  ): void {
    const client = `${addresses[0]} ${from.address}`;
    const key = `${client} ${from.port}`;
    const use = this.#usedPorts && this.#portUse(this.#usedPorts, key, datagram);
    if (use === 'heard') return;
    const load = {
      all: this.#active.size,
      ofThisClient: this.#perClient.get(client) ?? 0,
      unanswered: this.#latest.get(key)?.unansweredRequest,
    };
    const { limits } = this.#options;
    let served: FileAnswer | undefined;
    const decision = decideRequest(datagram, load, limits, (name) => {
      served = this.#find(name, addresses[0] ?? '');
      return served;
    });
    switch (decision.kind) {
      case 'start':
        this.#start(
          { decision, served, request: datagram, from, addresses },
          use && { socket, ...use },
        );
        return;
      case 'refuse':
        socket.send(decision.reply, from);
        this.#options.meter?.tftpRefused();
        if (served === absent) return;
        this.report({ client: from.address, reason: decision.reason }, 'TFTP request refused');
        return;
      case 'ignore':
        return;
    }
  }

  /** Y4; `heard`: the datagram was no request, or a request that needs no further action. */
  #portUse(ports: UsedPorts, key: string, datagram: Uint8Array): { afterMs: number } | 'heard' {
    const nowMs = this.#options.clock.suspendAwareMs();
    const active = this.#latest.get(key);
    if (!isReadRequest(datagram)) {
      ports.noteDatagram(key, nowMs);
      active?.receive(datagram);
      return active === undefined ? { afterMs: 0 } : 'heard';
    }
    const use = ports.judge(key, datagram, nowMs);
    if (use.kind === 'late') return 'heard';
    const before = active?.unansweredRequest;
    // A repetition starts nothing, and ends nothing either.
    if (before === undefined || !Buffer.from(before).equals(datagram)) active?.supersede();
    return { afterMs: use.kind === 'again' ? use.afterMs : 0 };
  }

  report(fields: LogFields, message: string, error?: unknown): void {
    const { log } = this.#options;
    this.#trouble.spend((suppressed) => log.warn({ ...fields, suppressed }, message, error));
  }

  close(): void {
    this.#closed = true;
    for (const active of this.#active) active.close();
    this.#active.clear();
    this.#options.kept.close();
  }

  #find(fileName: string, path: string): FileAnswer {
    const target = parseTftpName(fileName);
    switch (target.kind) {
      case 'loader':
        return this.#loader(target.mac, target.name);
      case 'grubStart': {
        const urls = this.#options.urlsAt(path);
        return urls === undefined ? noSuchFile : text(grubStartScript(urls.root));
      }
      case 'uBootStart':
        return uBootStart;
      case 'script':
        return this.#script(target.mac, target.language, path);
      case 'hostFile':
        return this.#hostFile(target.mac, target.name);
      case 'blob': {
        const blob = this.#options.imageBlob?.(target.hex);
        if (blob === 'later' || blob?.readable !== undefined) return { kind: 'later' };
        return blob === undefined ? noSuchFile : this.#kept(blob.path);
      }
    }
  }

  #loader(mac: Mac | undefined, name: string): FileAnswer {
    const own = this.#options.raspberryPi?.find(mac, name);
    if (own instanceof Uint8Array) return { kind: 'file', bytes: own };
    if (own === 'absent' && !this.#options.loaders.has(name)) return absent;
    if (mac !== undefined) {
      const decision = this.#options.bootGate(mac, 'tftp');
      if (decision.kind === 'unknownHost') return unknownHost;
      if (decision.kind === 'localBoot') return noGrant;
    }
    const bytes = this.#options.loaders.get(name);
    return bytes === undefined ? noSuchFile : { kind: 'file', bytes };
  }

  #script(mac: Mac, language: ScriptLanguage, path: string): FileAnswer {
    const urls = this.#options.urlsAt(path);
    if (urls === undefined) return noSuchFile;
    const answer = this.#options.scripts.of(mac, language, urls);
    switch (answer.kind) {
      case 'script':
        return text(answer.text);
      case 'later':
        return answer;
      case 'unknownHost':
        return unknownHost;
      case 'nothing':
        return noSuchFile;
      case 'fault':
        // U-Boot asks again for ever after a code that says less (`netretry`).
        return { kind: 'refused', code: tftpError.fileNotFound, message: 'no boot script' };
    }
  }

  /** As by HTTP: kernel and ramdisk for hosts that may start them. */
  #hostFile(mac: Mac, name: string): FileAnswer {
    const file = this.#options.files.get(name);
    const decision = this.#options.bootGate(mac, 'file');
    if (decision.kind === 'unknownHost' || file === undefined) return unknownHost;
    if (file.kind === 'memory') return { kind: 'file', bytes: file.bytes };
    if (!mayStartRunner(decision)) return noGrant;
    return this.#kept(file.path);
  }

  #kept(path: string): FileAnswer {
    const found = this.#options.kept.find(path);
    switch (found.kind) {
      case 'kept':
        return { kind: 'file', bytes: found.bytes, giveBack: found.giveBack };
      case 'later':
        return { kind: 'later' };
      case 'missing':
        return noSuchFile;
      case 'tooLarge':
        return { kind: 'refused', code: tftpError.notDefined, message: 'too large for TFTP' };
    }
  }

  #start(begun: TransferStart, single: SinglePort | undefined): void {
    const { decision, served, request, from, addresses } = begun;
    const { transfer, fileName } = decision;
    const { log, udp } = this.#options;
    const client = `${addresses[0]} ${from.address}`;
    const key = `${client} ${from.port}`;
    const bootTransfer = this.#bootTransfer(fileName);
    const onEnd = (end: TransferEnd): void => {
      this.#active.delete(active);
      if (this.#latest.get(key) === active) this.#latest.delete(key);
      this.#count(client, -1);
      const file = served?.kind === 'file' ? served : undefined;
      file?.giveBack?.();
      const size = file?.bytes.length ?? 0;
      this.#options.meter?.tftpEnded(end.kind, end.kind === 'complete' ? size : 0);
      if (end.kind === 'complete') bootTransfer?.sent(size);
      else bootTransfer?.failed(`the transfer ended: ${end.kind}`);
      log.debug({ client: from.address, file: fileName, end: end.kind }, 'TFTP transfer ended');
    };
    const whose = { transfer, request: request.slice(), client: from };
    const active = new ActiveTransfer({ ...whose, deadlines: this.#deadlines, onEnd });
    this.#active.add(active);
    this.#latest.set(key, active);
    this.#count(client, 1);
    if (single !== undefined) {
      this.#usedPorts?.noteStart(key, whose.request, this.#options.clock.suspendAwareMs());
      active.openAt(single.socket, single.afterMs);
      return;
    }
    active.open(udp, addresses).catch((error: unknown) => {
      this.report({ client: from.address }, 'TFTP transfer has no socket', error);
      active.close();
      onEnd({ kind: 'aborted', message: 'no socket' });
    });
    if (this.#closed) active.close();
  }

  /** A file of a boot, where its name says whose. */
  #bootTransfer(fileName: string): BootFileTransfer | undefined {
    const { bootEvents, raspberryPi } = this.#options;
    const target = parseTftpName(fileName);
    switch (target.kind) {
      case 'loader':
        // A Raspberry Pi's firmware breaks transfers off once it knows that there is a file.
        if (target.mac === undefined || raspberryPi?.has(target.name)) return undefined;
        return bootEvents.file(target.mac, target.name, 'tftp');
      case 'hostFile':
        return bootEvents.file(target.mac, target.name, 'tftp');
      case 'script':
        return bootEvents.file(target.mac, scriptName, 'tftp');
      case 'grubStart':
      case 'uBootStart':
      case 'blob':
        return undefined;
    }
  }

  #count(client: string, change: 1 | -1): void {
    const count = (this.#perClient.get(client) ?? 0) + change;
    if (count > 0) this.#perClient.set(client, count);
    else this.#perClient.delete(client);
  }
}

/** The answer to a request; `giveBack`: to be called when its transfer has ended. */
type FileAnswer = FileLookup & { readonly giveBack?: () => void };

const unknownHost = refused(tftpError.fileNotFound, 'unknown host');
const noGrant = refused(tftpError.accessViolation, 'no boot grant');
const noSuchFile = refused(tftpError.fileNotFound, 'no such file');
/** What firmware asks for in case there is one: it gets no line in the log. */
const absent = refused(tftpError.fileNotFound, 'no such file');

const uBootStart: FileAnswer = {
  kind: 'file',
  bytes: uBootImage('Rackwright', uBootStartScript()),
};

function refused(code: number, message: string): FileAnswer {
  return { kind: 'refused', code, message };
}

function text(content: string): FileAnswer {
  return { kind: 'file', bytes: Buffer.from(content) };
}

/** How a transfer without a socket of its own sends, and its delay before it begins. */
interface SinglePort {
  readonly socket: UdpSocket;
  readonly afterMs: number;
}

interface TransferStart {
  readonly served: FileAnswer | undefined;
  readonly decision: RequestDecision & { kind: 'start' };
  readonly request: Uint8Array;
  readonly from: UdpPeer;
  readonly addresses: readonly string[];
}
