/**
 * What a Redfish service answers: each reader of the driver meets a service whose answers are the
 * lines of the input, "STATUS METHOD PATH BODY". Any other path is not there.
 */

import { RedfishDriver } from '../../../packages/bmc/src/redfish/driver.ts';
import { defaultRedfishOptions } from '../../../packages/bmc/src/redfish/parts.ts';
import type {
  HttpClient,
  HttpsOutcome,
  HttpsRequest,
} from '../../../packages/platform/src/https-client.ts';
import { RedfishService } from '../../../packages/sim/src/redfish/service.ts';
import { type Target, textOf, texts } from '../target.ts';
import { OwnTime } from './own-time.ts';

const sessions = '/redfish/v1/SessionService/Sessions';
const timings = { windowMs: 100, pollMs: 50 };
const firmwareUrls = ['http://192.0.2.9/firmware/'];

type Answer = (request: HttpsRequest) => HttpsOutcome;

function answered(status: number, body: string, headers = {}): HttpsOutcome {
  const certificateSha256 = '00'.repeat(32);
  const bytes = new TextEncoder().encode(body);
  return { kind: 'answered', status, headers, body: bytes, certificateSha256 };
}

/** A driver of a service that is a function, in time of its own. */
function driverOf(answer: Answer, clock: OwnTime): RedfishDriver {
  const request = async (one: HttpsRequest) => answer(one);
  const client: HttpClient = { peer: () => ({ request, close: () => {} }) };
  return new RedfishDriver({
    target: {
      ...{ address: '192.0.2.1', port: 443, certificateSha256: undefined },
      ...{ user: 'operator', password: 'word-that-hides', credential: 'credentials/test@1' },
    },
    governor: { run: (_credential, act) => act() },
    client,
    clock,
    options: { ...defaultRedfishOptions, firmwareUrls },
    readBack: timings,
    settle: timings,
    restart: { beginsWithinMs: 100, backWithinMs: 100, pollMs: 50 },
    update: { ...timings, shownWithinMs: 100 },
    volumes: { ...timings, shownWithinMs: 100 },
  });
}

const readers: Readonly<Record<string, (driver: RedfishDriver) => Promise<unknown>>> = {
  identity: (driver) => driver.readIdentity(),
  system: async (driver) => [
    await driver.readPowerAndHealth(),
    await driver.setBootOverride({ device: 'network', firmware: 'uefi' }),
  ],
  power: async (driver) => [await driver.setPower('on'), await driver.softOff()],
  inventory: (driver) =>
    driver.readInventory(['processors', 'memory', 'drives', 'interfaces', 'firmware']),
  sensors: (driver) => driver.readSensors(),
  'event-log': async (driver) => [await driver.readLog(20), await driver.clearEventLog()],
  firmware: (driver) => driver.readFirmware(),
  bios: async (driver) => [
    await driver.readBios(),
    await driver.stageBios(new Map([['BootMode', 'Uefi']])),
    await driver.checkBios(new Map([['BootMode', 'Uefi']])),
  ],
  'boot-order': async (driver) => [
    await driver.readBootOrder(),
    await driver.setBootOrder(['Boot0001']),
  ],
  media: async (driver) => [
    await driver.readMedia(),
    await driver.insertMedia('http://192.0.2.9/boot.iso'),
    await driver.ejectMedia(),
  ],
  indicator: async (driver) => [await driver.setIndicator(true), await driver.resetBmc()],
  update: (driver) => {
    const uri = `${firmwareUrls[0]}bios.bin`;
    const order = { component: 'BIOS', version: '2', uri, checkOnly: false };
    return driver.updateFirmware(order, () => {});
  },
  volumes: (driver) => {
    const drives = ['Disk.0', 'Disk.1'];
    const volumes = [{ raidType: 'RAID1' as const, drives }];
    const order = { controller: 'RAID.1', volumes, checkOnly: false };
    return driver.applyVolumes(order, { onProgress: () => {}, beforeOrder: () => {} });
  },
};

/** A machine with one of everything. */
function simulatedService(clock: OwnTime): RedfishService {
  return new RedfishService(clock, {
    user: 'operator',
    password: 'word-that-hides',
    identity: {
      ...{ uuid: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01', serial: 'HOST-0001' },
      ...{ manufacturer: 'Simulated', model: 'Lab Host', chassisSerial: 'CHS-0001' },
    },
    machine: { powerOn: () => {}, powerOff: () => {}, isOn: () => true },
    habits: { powerDelayMs: [0, 0], restartMs: 50 },
    logEntries: 3,
    inventory: {
      processors: [{ model: 'CPU', manufacturer: 'Maker', cores: 8, threads: 16 }],
      memory: [{ capacityMiB: 8_192, serial: 'S1' }],
      drives: [
        {
          ...{ serial: 'D1', model: 'Disk', manufacturer: 'Maker', capacityBytes: 1_000_000 },
          ...{ media: 'SSD', protocol: 'NVMe', firmware: '1.0' },
        },
      ],
      interfaces: [{ mac: '52:54:00:00:00:01', speedMbps: 10_000 }],
      adapters: [
        {
          id: 'NIC.1',
          ports: [{ id: 'P1', speedMbps: 25_000, macs: ['52:54:00:00:00:02'] }],
          functions: [{ mac: '52:54:00:00:00:02', port: 'P1', type: 'Ethernet' }],
        },
      ],
    },
    sensors: {
      temperatures: [{ name: 'CPU', reading: 40, health: 'OK' }],
      fans: [{ name: 'Fan1', reading: 5_400 }],
    },
    firmware: [{ id: 'BIOS', version: '1' }],
    bios: {
      attributes: { BootMode: 'Bios', Cores: 4, Fast: true },
      registry: [
        {
          ...{ AttributeName: 'BootMode', Type: 'Enumeration', ReadOnly: false },
          Value: [{ ValueName: 'Bios' }, { ValueName: 'Uefi' }],
        },
        { AttributeName: 'Cores', Type: 'Integer', LowerBound: 1, UpperBound: 8 },
      ],
      bootOptions: [
        { id: 'Boot0000', name: 'Disk' },
        { id: 'Boot0001', name: 'Network' },
      ],
    },
    raid: { volumes: [{ raidType: 'RAID0', drives: [1] }] },
  });
}

/** What the simulated service answers while a reader is at work, as lines. */
async function recorded(read: (driver: RedfishDriver) => Promise<unknown>): Promise<string> {
  const clock = new OwnTime();
  const service = simulatedService(clock);
  const lines = new Map<string, string>();
  const answer: Answer = ({ method, path, headers, body = '' }) => {
    const given = service.answer({ method, target: path, headers, body });
    const isSession = path.startsWith(sessions);
    const name = `${method} ${path}`;
    if (!isSession) lines.set(name, `${given.status} ${name} ${given.body.replaceAll('\n', ' ')}`);
    return answered(given.status, given.body, given.headers);
  };
  await clock.settle(read(driverOf(answer, clock)));
  service.stop();
  return [...lines.values()].join('\n');
}

interface WrittenAnswer {
  readonly status: number;
  readonly body: string;
}

function answersOf(text: string): ReadonlyMap<string, WrittenAnswer> {
  const found = text.split('\n').map((line) => /^(\d{3}) ([A-Z]+ \S+) ?(.*)$/s.exec(line));
  return new Map(
    found.flatMap((line) => {
      const [, status, name, body] = line ?? [];
      if (name === undefined || body === undefined) return [];
      return [[name, { status: Number(status), body }]];
    }),
  );
}

/** A BMC that goes on for ever ends the reading here: a reader has far fewer requests. */
const requestsMax = 5_000;

async function readFrom(
  input: Uint8Array,
  read: (driver: RedfishDriver) => Promise<unknown>,
): Promise<unknown> {
  const answers = answersOf(textOf(input));
  let requests = 0;
  const answer: Answer = ({ method, path }) => {
    requests += 1;
    if (requests > requestsMax) throw new Error(`more than ${requestsMax} requests`);
    const given = answers.get(`${method} ${path}`);
    if (given !== undefined) {
      return answered(given.status, given.body, { location: '/redfish/v1/TaskService/Tasks/1' });
    }
    if (method === 'POST' && path === sessions) {
      return answered(201, '{}', { 'x-auth-token': 'token', location: `${sessions}/1` });
    }
    return method === 'DELETE' ? answered(204, '') : answered(404, '{}');
  };
  const clock = new OwnTime();
  return clock.settle(read(driverOf(answer, clock)));
}

async function redfishTarget(
  name: string,
  read: (driver: RedfishDriver) => Promise<unknown>,
): Promise<Target> {
  return {
    name: `redfish.${name}`,
    form: 'json',
    seeds: texts(await recorded(read)),
    parse: (input) => readFrom(input, read),
    refusals: [],
    tokens: [
      ...['@odata.id', '@odata.nextLink', 'Members', 'Members@odata.count', 'Status', 'Health'],
      ...['Id', 'Name', 'PowerState', 'Actions', 'Boot', 'Links', 'Oem', '/redfish/v1/Systems'],
    ],
    bounds: { inputBytesMax: 64 * 1024 },
  };
}

export const targets: readonly Target[] = await Promise.all(
  Object.entries(readers).map(([name, read]) => redfishTarget(name, read)),
);
