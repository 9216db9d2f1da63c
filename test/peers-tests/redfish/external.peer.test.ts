/**
 * The contract of BmcDriver with Redfish services that we did not write: OpenStack's emulator and
 * DMTF's mockup server (`foreign.ts`), and one that is given by
 * RACKWRIGHT_REDFISH_URL=https://USER:PASSWORD@HOST:PORT, such as a real BMC that may be switched.
 * Cases that need a broken BMC run on ours only.
 */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type BmcDriver,
  defaultGovernorLimits,
  defaultReadBackTimings,
  defaultRedfishOptions,
  Governor,
  type ReadBackTimings,
} from '@rackwright/bmc';
import { type BmcRig, bmcConformance, type DeviceSide } from '@rackwright/bmc/conformance';
import { RedfishDriver } from '@rackwright/bmc/drivers';
import { nodeClock, nodeHttpClient } from '@rackwright/platform/node';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type ForeignName, type ForeignService, missingForeign, startForeign } from './foreign.ts';

const given = process.env['RACKWRIGHT_REDFISH_URL'];
const clock = nodeClock();

/** Those that a working service alone can show, looked at from its own side. */
const cases = [
  'reads the power state that the device has',
  'switches on and off, and the device is switched when it says so',
  'asks a running system to shut down, once, and switches nothing itself',
  'asks nothing of a machine that is off, and does not switch it on',
  'sets the boot override to network',
  'sets the boot override to disk',
  'sets the boot override to cd',
  'sets the boot override to none',
  'calls a wrong password an authentication failure',
  'gives up at once when its caller has',
] as const;
type CaseName = (typeof cases)[number];

/** What a service cannot show, by the case's name and the words that it ends with. */
type Exceptions = Readonly<{ [name in CaseName]?: RegExp }>;

/** How long a change is read back: no longer where none is ever made. */
const readBacks: Readonly<Record<ForeignName, ReadBackTimings>> = {
  'sushy-tools': defaultReadBackTimings,
  'redfish-mockup-server': { windowMs: 1_000, pollMs: 250 },
};

const services: Readonly<Record<ForeignName, Exceptions>> = {
  'sushy-tools': {},
  'redfish-mockup-server': {
    // It is on, says yes, and stays on.
    'switches on and off, and the device is switched when it says so': /false !== true/,
    // It is always on.
    'asks nothing of a machine that is off, and does not switch it on': /wasRequested: true/,
    // It asks nobody who they are.
    'calls a wrong password an authentication failure': /\+ 'ok'\n- 'authentication'/,
  },
};

const devices: Readonly<Record<string, DeviceSide['bootDevice']>> = {
  Pxe: 'network',
  UefiHttp: 'network',
  Hdd: 'disk',
  Cd: 'cd',
};

class External {
  readonly #url: URL;
  readonly #readBack: ReadBackTimings;

  constructor(url: URL, readBack: ReadBackTimings) {
    this.#url = url;
    this.#readBack = readBack;
    if (this.#url.protocol !== 'https:') throw new Error('a BMC is spoken to by https:// only');
  }

  driver(password = decodeURIComponent(this.#url.password)): BmcDriver {
    const limits = { ...defaultGovernorLimits, spacingMs: 50, authenticationFailuresMax: 100 };
    return new RedfishDriver({
      target: {
        address: this.#url.hostname.replaceAll(/[[\]]/g, ''),
        port: Number(this.#url.port === '' ? '443' : this.#url.port),
        certificateSha256: undefined,
        user: decodeURIComponent(this.#url.username),
        password,
        credential: 'credentials/external@1',
      },
      governor: new Governor(clock, limits, () => {}),
      client: nodeHttpClient(),
      clock,
      options: defaultRedfishOptions,
      readBack: this.#readBack,
      settle: this.#readBack,
      restart: { beginsWithinMs: 2_000, backWithinMs: 10_000, pollMs: 200 },
    });
  }

  /** The first system, by a bare request beside the driver. */
  async device(): Promise<DeviceSide> {
    const systems = await this.#get('/redfish/v1/Systems');
    const [first] = systems['Members'] as { '@odata.id': string }[];
    const system = await this.#get(first?.['@odata.id'] ?? '');
    const boot = system['Boot'] as Record<string, string>;
    const isSet = boot['BootSourceOverrideEnabled'] !== 'Disabled';
    const target = isSet ? (boot['BootSourceOverrideTarget'] ?? '') : '';
    const power = system['PowerState'] === 'On' ? 'on' : 'off';
    return { power, bootDevice: devices[target] ?? 'none', switches: 0, softOffs: undefined };
  }

  async #get(path: string): Promise<Record<string, unknown>> {
    const { hostname, port, username, password } = this.#url;
    const address = hostname.replaceAll(/[[\]]/g, '');
    const target = { address, port: Number(port || '443'), certificateSha256: undefined };
    const peer = nodeHttpClient().peer(target, defaultRedfishOptions.limits);
    const account = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    const headers = { authorization: `Basic ${Buffer.from(account).toString('base64')}` };
    const answer = await peer.request({ method: 'GET', path, headers });
    peer.close();
    if (answer.kind !== 'answered') throw new Error(`${path}: ${answer.kind}`);
    return JSON.parse(Buffer.from(answer.body).toString());
  }
}

async function makeRig(external: External): Promise<BmcRig> {
  const honest = external.driver();
  await honest.setPower('off');
  return {
    honest,
    wrongPassword: external.driver('something else'),
    // The cases above ask nothing of these.
    silent: honest,
    lying: honest,
    slow: honest,
    identity: {},
    password: 'not asked for',
    device: () => external.device(),
    nowMs: () => clock.suspendAwareMs(),
    close: async () => {},
  };
}

/** It may have disks. */
async function hasNoVolumes(driver: BmcDriver): Promise<void> {
  const order = { controller: '1', volumes: [], checkOnly: false };
  const refused = await driver.applyVolumes?.(order, {
    onProgress: () => {},
    beforeOrder: () => {},
  });
  assert.equal(refused?.kind === 'failed' && refused.type, 'unsupported');
}

/** What the others say beside power and boot, as they were shipped. */
const readings: Readonly<Record<ForeignName, (driver: BmcDriver) => Promise<void>>> = {
  'sushy-tools': async (driver) => {
    assert.equal((await driver.readPowerAndHealth()).kind, 'ok');
    const settings = new Map([['Threads', 'Disabled']]);
    for (const read of [
      driver.readFirmware?.(),
      driver.readLog?.(5),
      driver.stageBios?.(settings),
      driver.readBootOrder?.(),
    ]) {
      const result = await read;
      assert.equal(result?.kind === 'failed' ? result.type : result?.kind, 'unsupported');
    }
  },
  'redfish-mockup-server': async (driver) => {
    const seen = await driver.readPowerAndHealth();
    assert.deepEqual(seen, {
      kind: 'ok',
      value: { power: 'on', health: { level: 'ok', text: '' } },
    });
    const sensors = await driver.readSensors?.();
    assert.ok(sensors?.kind === 'ok' && sensors.value.complete);
    const cpu = sensors.value.sensors.find(({ name }) => name === 'CPU1 Temp');
    assert.deepEqual(cpu, {
      name: 'CPU1 Temp',
      kind: 'temperature',
      reading: 41,
      unit: 'Cel',
      health: 'ok',
    });
    const firmware = await driver.readFirmware?.();
    assert.ok(firmware?.kind === 'ok' && firmware.value.components.length === 3);
    const log = await driver.readLog?.(5);
    assert.ok(log?.kind === 'ok' && log.value.entries.length > 0);
    const bios = await driver.readBios?.();
    assert.ok(bios?.kind === 'ok' && bios.value.settings.length === 10);
    const disks = bios.value.settings.find(({ name }) => name === 'EmbeddedSata');
    assert.deepEqual(disks, { name: 'EmbeddedSata', current: 'Raid', pending: 'Ahci' });
    // It keeps what it is told, and no boot of it takes that.
    const settings = new Map([['ProcTurboMode', 'Disabled']]);
    assert.equal((await driver.stageBios?.(settings))?.kind, 'ok');
    const dropped = await driver.checkBios?.(settings);
    assert.equal(dropped?.kind === 'failed' && dropped.type, 'stillPending');
    await hasNoVolumes(driver);
    // It says yes, and does not restart.
    const lie = await driver.resetBmc();
    assert.equal(lie.kind === 'failed' ? lie.type : lie.kind, 'notApplied');
  },
};

/** A server of a small image, as a BMC would fetch it, and how often it was asked. */
async function serveImage(): Promise<{ url: string; asked: () => number; close: () => void }> {
  let asked = 0;
  const server = createServer((_, response) => {
    asked += 1;
    response.end(Buffer.alloc(64 * 1024, 1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/files/medium.iso`;
  return { url, asked: () => asked, close: () => server.close() };
}

/** What each comes to when media are inserted and ejected. */
const media: Readonly<Record<ForeignName, (driver: BmcDriver, url: string) => Promise<void>>> = {
  'sushy-tools': async (driver, url) => {
    const changed = { kind: 'ok', value: { changed: true, notes: [] } };
    assert.deepEqual(await driver.insertMedia?.(`${url}?before`), changed);
    assert.deepEqual(await driver.insertMedia?.(url), changed);
    assert.deepEqual(await driver.readMedia?.(), { kind: 'ok', value: url });
    const same = { kind: 'ok', value: { changed: false, notes: [] } };
    assert.deepEqual(await driver.insertMedia?.(url), same);
    assert.deepEqual(await driver.ejectMedia?.(), changed);
    assert.deepEqual(await driver.readMedia?.(), { kind: 'ok', value: undefined });
    assert.deepEqual(await driver.ejectMedia?.(), same);
    // It fetches the image itself, and says what it does not get.
    const gone = await driver.insertMedia?.('http://127.0.0.1:1/none.iso');
    assert.ok(gone !== undefined && gone.kind !== 'ok', JSON.stringify(gone));
  },
  // Its drive has no actions: it keeps what it is told by PATCH, and fetches nothing.
  'redfish-mockup-server': async (driver, url) => {
    const changed = { kind: 'ok', value: { changed: true, notes: [] } };
    const shipped = await driver.readMedia?.();
    assert.ok(shipped?.kind === 'ok' && shipped.value?.endsWith('/freeOS.1.1.iso'));
    assert.deepEqual(await driver.insertMedia?.(url), changed);
    assert.deepEqual(await driver.readMedia?.(), { kind: 'ok', value: url });
    assert.deepEqual(await driver.ejectMedia?.(), changed);
    assert.deepEqual(await driver.readMedia?.(), { kind: 'ok', value: undefined });
  },
};

async function runCase(name: CaseName, external: External): Promise<void> {
  const found = bmcConformance.find((one) => one.name === name);
  if (found === undefined) throw new Error(`no case is named ${name}`);
  await found.run(await makeRig(external));
}

describe.each(Object.entries(services))('RedfishDriver with %s', (key, exceptions) => {
  const name = key as ForeignName;
  const missing = missingForeign(name);
  let service: ForeignService | undefined;
  beforeAll(async () => {
    if (missing === undefined) service = await startForeign(name);
  });
  afterAll(() => service?.close());

  test('reads what it offers, and accepts no change that it does not make', async (context) => {
    if (service === undefined) return context.skip(missing);
    await readings[name](new External(service.url, readBacks[name]).driver());
  });

  test('inserts and ejects media, and trusts only what is read back', async (context) => {
    if (service === undefined) return context.skip(missing);
    const image = await serveImage();
    try {
      await media[name](new External(service.url, readBacks[name]).driver(), image.url);
      assert.equal(image.asked() > 0, name === 'sushy-tools');
    } finally {
      image.close();
    }
  });

  for (const one of cases) {
    const pattern = exceptions[one];
    const title = pattern === undefined ? one : `does not show: ${one}`;
    test(title, async (context) => {
      if (service === undefined) return context.skip(missing);
      const ended = runCase(one, new External(service.url, readBacks[name]));
      if (pattern === undefined) await ended;
      else await assert.rejects(ended, pattern);
    });
  }
});

describe('RedfishDriver with a service given by its URL', () => {
  for (const name of cases) {
    test(name, async (context) => {
      if (given === undefined) return context.skip('no RACKWRIGHT_REDFISH_URL is set');
      await runCase(name, new External(new URL(given), defaultReadBackTimings));
    });
  }
});
