import {
  type DhcpPacket,
  decodeDhcp,
  dhcpOption,
  encodeDhcp,
  readOption,
  writeOption,
} from '@rackwright/dhcp';
import type { UdpPeer, UdpSocket } from '@rackwright/platform';
import { recordingLog } from '@rackwright/platform/testing';
import { describe, expect, test } from 'vitest';
import { MemoryDisk } from '../journal/testing/disk.ts';
import { TestClock } from '../session/testing/clock.ts';
import { type BootEvent, BootEvents } from './boot-events.ts';
import { addressPlanOf, dhcpListenDefault, type ReservationDhcpConfig } from './dhcp-config.ts';
import { type DhcpFault, DhcpServer } from './dhcp-server.ts';
import { makeAddressWatch, makeBootGate, type NetbootObservation } from './observation.ts';
import { probeMac } from './probe.ts';

const serverAddress = '10.77.0.1';
const mac = '52:54:00:77:00:01';
const anywhere: UdpPeer = { address: '0.0.0.0', port: 68 };

const dhcp: ReservationDhcpConfig = {
  mode: 'reservation',
  ...dhcpListenDefault,
  subnet: { network: '10.77.0.0/24', routers: [], dnsServers: [], leaseSeconds: 3_600 },
  reservations: [],
  range: { first: '10.77.0.10', last: '10.77.0.20' },
  declinedMs: 600_000,
  otherServer: { quietMs: 300_000, probeMs: 60_000 },
  leasesPath: '/state/dhcp-leases',
};

interface Sent {
  readonly packet: DhcpPacket;
  readonly to: UdpPeer;
}

class Rig {
  readonly time = new TestClock();
  readonly disk = new MemoryDisk();
  readonly lines: string[] = [];
  readonly faults: DhcpFault[] = [];
  readonly gone: string[] = [];
  readonly observed: NetbootObservation[] = [];
  readonly bootEvents: BootEvent[] = [];
  /** Uids of the hosts whose systems have asked for an address. */
  readonly asked: string[] = [];
  readonly sent: Sent[] = [];
  readonly socket: UdpSocket = {
    local: { address: '0.0.0.0', port: 67 },
    send: (datagram, to) => this.sent.push({ packet: decodeDhcp(datagram), to }),
    close: () => {},
  };

  async open(): Promise<DhcpServer> {
    const { clock } = this.time.open();
    const log = recordingLog(({ level, message }) => {
      if (level !== 'debug') this.lines.push(message);
    });
    const hosts = [{ hostUid: 'u1', hostName: 'one', macs: [mac] }];
    const memory = () => ({ snapshot: { generation: 1, hosts }, grants: [] });
    const onNetboot = (one: NetbootObservation) => void this.observed.push(one);
    const made = addressPlanOf(dhcp, serverAddress);
    if (made.kind === 'bad') throw new Error(made.problem.text);
    const plan = made.value;
    return DhcpServer.open({
      ...{ disk: this.disk.open().disk, clock, log, path: dhcp.leasesPath, memory, dhcp },
      bootGate: makeBootGate({ clock, log, memory, onNetboot }),
      bootEvents: new BootEvents({
        clock,
        log,
        memory,
        onEvent: (one) => void this.bootEvents.push(one),
        kernel: '',
        initrd: '',
      }),
      sawAddress: makeAddressWatch({ clock, log, memory }, (uid) => void this.asked.push(uid)),
      onFault: (fault) => void this.faults.push(fault),
      onServerGone: (address) => void this.gone.push(address),
      settings: {
        ...dhcpListenDefault,
        serverAddress,
        plan,
        subnet: { leaseSeconds: 3_600, routers: [], nameServers: [] },
        declinedMs: dhcp.declinedMs,
        loadersOf: () => ({}),
        scriptUrl: () => 'http://10.77.0.1/script.ipxe',
        loaderUrl: () => '',
        loaderPath: () => '',
        servesRaspberryPi: true,
      },
    });
  }

  /** What the server answers, if anything. */
  say(server: DhcpServer, packet: DhcpPacket, from = anywhere): Sent | undefined {
    const before = this.sent.length;
    server.receive(this.socket, encodeDhcp(packet), from);
    return this.sent[before];
  }
}

type Options = readonly (readonly [number, Uint8Array])[];

function message(type: 'discover' | 'request' | 'offer', more: Options = []): DhcpPacket {
  return {
    op: type === 'offer' ? 'reply' : 'request',
    hardwareType: 1,
    hops: 0,
    transactionId: 7,
    seconds: 0,
    flags: 0,
    clientAddress: '0.0.0.0',
    yourAddress: type === 'offer' ? '10.77.0.120' : '0.0.0.0',
    nextServerAddress: '0.0.0.0',
    relayAddress: '0.0.0.0',
    hardwareAddress: Uint8Array.from(mac.split(':'), (pair) => Number.parseInt(pair, 16)),
    serverName: '',
    bootFile: '',
    options: new Map([writeOption(dhcpOption.messageType, type), ...more]),
  };
}

function request(address: string, server: string): DhcpPacket {
  return message('request', [
    writeOption(dhcpOption.requestedAddress, address),
    writeOption(dhcpOption.serverIdentifier, server),
  ]);
}

const ipxe = [writeOption(dhcpOption.userClass, { form: 'plain', classes: ['iPXE'] })];
const foreign = request('10.77.0.120', '10.77.0.2');

test('a host has the same address in the next life of the agent', async () => {
  const rig = new Rig();
  const server = await rig.open();
  const offer = rig.say(server, message('discover'));
  const address = offer?.packet.yourAddress ?? '';
  expect(rig.say(server, request(address, serverAddress))?.packet.yourAddress).toBe(address);
  await rig.time.run(10);
  const next = await rig.open();
  const renewal = { ...message('request'), clientAddress: address };
  const ack = rig.say(next, renewal);
  expect(ack && readOption(ack.packet, dhcpOption.messageType)).toBe('ack');
});

test('a boot is observed once, when it begins, and a plain client never', async () => {
  const rig = new Rig();
  const server = await rig.open();
  const offer = rig.say(server, message('discover', ipxe));
  const address = offer?.packet.yourAddress ?? '';
  const chosen = request(address, serverAddress);
  const ack = rig.say(server, { ...chosen, options: new Map([...chosen.options, ...ipxe]) });
  expect(ack?.packet.bootFile).toBe('http://10.77.0.1/script.ipxe');
  rig.say(server, message('discover'));
  expect(rig.observed).toMatchObject([{ mac, hostUid: 'u1', stage: 'dhcp', permitted: false }]);
  expect(rig.asked, 'the plain client').toEqual(['u1']);
});

const pxe = writeOption(dhcpOption.vendorClass, 'PXEClient');

test.each([
  ['93, empty', 93, []],
  ['93 of one byte', 93, [7]],
  ['77, empty', 77, []],
  ['43 = 01 ff 00', 43, [0x01, 0xff, 0x00]],
  ['60 that is no text', 60, [0xff, 0xfe]],
  ['50 of one byte', 50, [10]],
])('a host gets its address whatever option %s of its request says', async (_what, code, bytes) => {
  for (const kind of [[pxe], []]) {
    const rig = new Rig();
    const server = await rig.open();
    const broken = [code, Uint8Array.from(bytes)] as const;
    const offer = rig.say(server, message('discover', [...kind, broken]));
    expect(offer?.packet.yourAddress).toBe('10.77.0.20');
    rig.say(server, message('discover', [...kind, broken]));
    expect(rig.lines.filter((line) => line.includes('ignored')).length).toBeLessThanOrEqual(1);
  }
});

test('an option that is ignored is reported once for each machine', async () => {
  const rig = new Rig();
  const server = await rig.open();
  const broken = [93, Uint8Array.of(7)] as const;
  for (let again = 0; again < 5; again++) rig.say(server, message('discover', [pxe, broken]));
  const told = rig.lines.filter((line) => line.includes('ignored'));
  expect(told).toEqual(['a DHCP option that cannot be decoded is ignored']);
});

test('a question heard before is answered with its own number, and observed again', async () => {
  const rig = new Rig();
  const server = await rig.open();
  const boot = [writeOption(dhcpOption.vendorClass, 'PXEClient:Arch:00007')];
  const numbers = [7, 0xffff_fffe, 7].map((transactionId, seconds) => {
    return rig.say(server, { ...message('discover', boot), transactionId, seconds });
  });
  expect(numbers.map((one) => one?.packet.transactionId)).toEqual([7, 0xffff_fffe, 7]);
  const [first, ...others] = numbers.map((one) => one && { ...one.packet, transactionId: 0 });
  expect(others).toEqual([first, first]);
  expect(rig.observed.map(({ stage }) => stage)).toEqual(['dhcp', 'dhcp', 'dhcp']);
});

describe('beside another server', () => {
  /** The other server's answer to our last question. */
  function answerOf(rig: Rig): DhcpPacket {
    const probe = rig.sent.findLast(({ packet }) => packet.relayAddress === serverAddress)?.packet;
    if (probe === undefined) throw new Error('nothing was asked');
    const { transactionId, hardwareAddress } = probe;
    const offer = message('offer', [writeOption(dhcpOption.serverIdentifier, '10.77.0.2')]);
    return { ...offer, transactionId, hardwareAddress };
  }

  const other: UdpPeer = { address: '10.77.0.2', port: 67 };

  test('is silent for as long as it answers, and tells so once', async () => {
    const rig = new Rig();
    const server = await rig.open();
    for (let minute = 0; minute < 10; minute += 1) {
      rig.say(server, foreign);
      rig.say(server, answerOf(rig), other);
      await rig.time.run(60_000);
      expect(rig.say(server, message('discover'))).toBeUndefined();
    }
    expect(rig.faults).toMatchObject([{ kind: 'otherServer', serverAddress: '10.77.0.2' }]);
    await rig.time.run(239_999);
    expect(rig.say(server, message('discover'))).toBeUndefined();
    await rig.time.run(2);
    expect(rig.say(server, message('discover'))).toBeDefined();
    const told = rig.lines.filter((line) => !line.includes('looked for'));
    expect(told).toEqual([
      'another DHCP server gives addresses here: silent until it is gone',
      'no trace of the other DHCP server: serving again',
    ]);
    expect(rig.gone).toEqual([
      rig.faults.flatMap((one) => (one.kind === 'otherServer' ? one.serverAddress : []))[0],
    ]);
  });

  test('serves on where a client names one that does not answer: anybody may say so', async () => {
    const rig = new Rig();
    const server = await rig.open();
    rig.say(server, foreign);
    expect(rig.sent.map(({ packet }) => packet.relayAddress)).toEqual([serverAddress]);
    for (let again = 0; again < 20; again++) rig.say(server, foreign);
    expect(rig.sent, 'not one question for each such request').toHaveLength(1);
    expect(rig.say(server, message('discover'))).toBeDefined();
    expect(rig.faults).toEqual([]);
    await rig.time.run(2_000);
    rig.say(server, foreign);
    expect(rig.sent.filter(({ packet }) => packet.hops === 1)).toHaveLength(2);
  });

  test('takes no packet for an answer that answers no question of its own', async () => {
    const rig = new Rig();
    const server = await rig.open();
    server.probe(rig.socket);
    const answer = answerOf(rig);
    rig.say(server, { ...answer, transactionId: answer.transactionId + 1 }, other);
    rig.say(server, message('offer', [writeOption(dhcpOption.serverIdentifier, '10.77.0.2')]));
    expect(rig.say(server, message('discover'))).toBeDefined();
    expect(rig.faults).toEqual([]);
  });

  test('finds it by asking as a relay would, and does not answer itself', async () => {
    const rig = new Rig();
    const server = await rig.open();
    server.probe(rig.socket);
    const [probe] = rig.sent;
    expect(probe?.to).toEqual({ address: '255.255.255.255', port: 67 });
    expect(probe?.packet).toMatchObject({ relayAddress: serverAddress, hops: 1 });
    expect(rig.say(server, probe?.packet ?? message('discover'))).toBeUndefined();
    rig.say(server, answerOf(rig), other);
    expect(rig.faults).toMatchObject([{ kind: 'otherServer', serverAddress: '10.77.0.2' }]);
    expect(rig.say(server, message('discover'))).toBeUndefined();
  });

  test('asks every minute until it is closed, each time with another number', async () => {
    const rig = new Rig();
    const server = await rig.open();
    server.probe(rig.socket);
    await rig.time.run(180_000);
    const numbers = new Set(rig.sent.map(({ packet }) => packet.transactionId));
    expect([rig.sent.length, numbers.size]).toEqual([4, 4]);
    await server.close();
    await rig.time.run(180_000);
    expect(rig.sent).toHaveLength(4);
  });

  test('takes no offer for one that is its own or of another network', async () => {
    const rig = new Rig();
    const server = await rig.open();
    const own = message('offer', [writeOption(dhcpOption.serverIdentifier, serverAddress)]);
    const other = message('offer', [writeOption(dhcpOption.serverIdentifier, '10.77.0.2')]);
    rig.say(server, own);
    rig.say(server, { ...other, yourAddress: '192.0.2.9' });
    rig.say(server, { ...other, yourAddress: '0.0.0.0' });
    expect(rig.faults).toEqual([]);
  });
});

test('a declined address is reported; an observer that fails costs one log line', async () => {
  const rig = new Rig();
  const server = await rig.open();
  const address = rig.say(server, message('discover'))?.packet.yourAddress ?? '';
  rig.say(server, request(address, serverAddress));
  rig.faults.push = () => {
    throw new Error('full');
  };
  const declined = request(address, serverAddress);
  const options = new Map([...declined.options, writeOption(dhcpOption.messageType, 'decline')]);
  rig.say(server, { ...declined, options });
  expect(rig.lines).toEqual([
    'a client found its address in use by somebody else: put aside for a time',
    'observer of DHCP faults failed',
  ]);
  expect(rig.say(server, message('discover'))?.packet.yourAddress).not.toBe(address);
});

test('the probe has a MAC of its own for each server', () => {
  expect(probeMac('10.77.0.1')).toBe('02:52:0a:4d:00:01');
});
