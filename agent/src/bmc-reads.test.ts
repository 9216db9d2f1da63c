/** Reads of BMCs on simulated time: production drivers and governor, BMCs in memory. */
import { create } from '@bufbuild/protobuf';
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  defaultRedfishOptions,
} from '@rackwright/bmc';
import {
  type ImitatedBmc,
  imitatedBmc,
  imitatedIpmitool,
  VirtualClock,
} from '@rackwright/bmc/conformance';
import {
  agent,
  BmcIdentitySchema,
  BmcReadKind,
  FailureType,
  TransientCause,
} from '@rackwright/messages';
import { quietLog } from '@rackwright/platform/testing';
import { expect, test } from 'vitest';
import { createBmcDriver } from './bmc-drivers.ts';
import { AgentBmcReads } from './bmc-reads.ts';
import { createBmcDrivers } from './governed-bmcs.ts';
import { bmcEndpoint } from './operations/index.ts';

const guid = Uint8Array.from({ length: 16 }, (_, index) => index * 17);
const credential = { name: 'credentials/bmc', version: 1n, username: 'u', password: 'imitated' };
const access = create(agent.BmcAccessSchema, {
  address: '10.0.0.1',
  credential: credential.name,
  credentialVersion: 1n,
  protocol: 'ipmi',
});
const noHttp = { peer: () => Promise.reject(new Error('no HTTP here')) as never };

function setUp(changes: Partial<ImitatedBmc> = {}) {
  const clock = new VirtualClock();
  const bmc = imitatedBmc(changes);
  const config = {
    ipmitool: defaultIpmitoolOptions,
    redfish: defaultRedfishOptions,
    readBack: defaultReadBackTimings,
    governor: defaultGovernorLimits,
    firmware: 'bios',
  } as const;
  const exec = imitatedIpmitool(clock, bmc);
  const drivers = createBmcDrivers(
    config,
    { clock, exec, httpClient: noHttp, log: quietLog },
    createBmcDriver,
  );
  const told: agent.BmcRead[] = [];
  const session = {
    credential: () => credential,
    reportBmcRead: (read: agent.BmcRead) => void told.push(read),
  };
  const limits = { readsMax: 1, waitingMax: 2, readMs: 60_000 };
  const reads = new AgentBmcReads({
    clock,
    log: quietLog,
    drivers,
    session: () => session,
    limits,
  });
  const ask = (question: Partial<agent.ReadBmc> = {}) => {
    const usual = create(agent.ReadBmcSchema, {
      ...{ id: '1', hostUid: 'u1', bmc: access, expectedIdentity: { guid } },
      ...{ kind: BmcReadKind.SENSORS, maxEntries: 10 },
    });
    reads.read(Object.assign(usual, question));
  };
  const pass = (ms: number) =>
    clock.settle(new Promise<void>((resolve) => void clock.after(ms, resolve)));
  return { ask, told, bmc, drivers, clock, pass };
}

test('a BMC is read as it is now', async () => {
  const { ask, told, pass } = setUp({ sensors: 'Temp,41,degrees C,ok\n', logEntries: 3 });
  ask();
  await pass(5_000);
  expect(told).toMatchObject([
    { id: '1', hostUid: 'u1', failure: 0, transient: 0, reading: { sensors: [{ reading: 41 }] } },
  ]);
  ask({ kind: BmcReadKind.LOG, maxEntries: 2 });
  await pass(5_000);
  expect(told[1]?.reading?.logEntries.map(({ id }) => id)).toEqual(['3', '2']);
  expect(told[1]?.reading?.complete).toBe(false);
});

test('a read that fails is reported with a failure of the closed list', async () => {
  const { ask, told, pass } = setUp();
  ask({ expectedIdentity: create(BmcIdentitySchema, { guid, serial: 'ANOTHER' }) });
  ask({ kind: 99 as BmcReadKind });
  await pass(10_000);
  expect(told.map(({ failure }) => failure)).toEqual([
    FailureType.IDENTITY_MISMATCH,
    FailureType.UNSUPPORTED,
  ]);
  expect(told.every(({ reading, message }) => reading === undefined && message !== '')).toBe(true);
});

test('a read gives way to work on the BMC, and too many are refused at once', async () => {
  const { ask, told, drivers, pass, clock } = setUp({ silent: true });
  for (const id of ['1', '2', '3', '4']) ask({ id });
  expect(told).toMatchObject([{ id: '4', transient: TransientCause.BUSY }]);
  await pass(1_000);
  const endpoint = bmcEndpoint(access, credential, undefined);
  if (endpoint === undefined) throw new Error('IPMI is spoken here');
  const work = drivers.driver(endpoint).powerState();
  await pass(10);
  expect(told[1]).toMatchObject({ id: '1', transient: TransientCause.BUSY });
  await clock.settle(work);
});

test('a BMC that never answers ends a read as unreachable', async () => {
  const { ask, told, pass } = setUp({ silent: true });
  ask();
  await pass(120_000);
  expect(told).toMatchObject([{ transient: TransientCause.UNREACHABLE }]);
});
