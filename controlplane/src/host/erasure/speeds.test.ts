/** The measured speeds of disks determine their time limits, and the durations in plans. */
import { create, type MessageInitShape, toBinary, toJson } from '@bufbuild/protobuf';
import {
  DurationSchema,
  durationFromMs,
  durationMs,
  TimestampSchema,
  timestampFromMs,
} from '@bufbuild/protobuf/wkt';
import { deviceFactsOf } from '@rackwright/erasure';
import {
  agent,
  CleaningMethod,
  FailureType,
  type OperationId,
  PlanRunRequestSchema,
  StorageDeviceSchema,
  StorageRegionSchema,
  store,
  Transport,
} from '@rackwright/messages';
import { expect, test } from 'vitest';
import { planNow } from '../foresee/plan-check.ts';
import { beginPass } from '../pass/pass.ts';
import { type Bench, erased, inspected, virtioDisk } from '../testing/bench.ts';
import { atErase, available, boot, brings, proves } from './power-cycle.fixture.ts';
import { slowestSpeed } from './speeds.ts';
import { eraseTimeoutMs, readTimeoutMs } from './times.ts';

const { METADATA_ONLY, NVME_FORMAT } = agent.ErasureMethod;
const seed = new Uint8Array(32).fill(1);
const terabyte = 10n ** 12n;
const hour = 3_600_000;
const large = create(StorageDeviceSchema, {
  ...virtioDisk,
  sizeBytes: 20n * terabyte,
  rotational: true,
  discardSupported: false,
  regions: [
    create(StorageRegionSchema, {
      ...{ name: 'vda', sizeBytes: 20n * terabyte, logicalBlockBytes: 512 },
    }),
  ],
});
const full = { level: agent.VerificationLevel.FULL };

type Outcome = Exclude<MessageInitShape<typeof agent.DeviceOutcomeSchema>, agent.DeviceOutcome>;

/** The erase step fails, with this evidence about the disk. */
function failsWith(host: Bench, outcome: Outcome, operationId?: OperationId) {
  const { OVERWRITE } = agent.ErasureMethod;
  const { UNVERIFIED } = agent.VerdictKind;
  const device = { device: large, method: OVERWRITE, verdict: UNVERIFIED, ...outcome };
  const changes = { ofFailedStep: true, ...(operationId === undefined ? {} : { operationId }) };
  const evidence = host.evidence([device], changes);
  const value = create(agent.FailedSchema, { type: FailureType.UNVERIFIED, evidence });
  host.report({ case: 'failed', value });
}

function planOf(host: Bench) {
  const pass = beginPass(host.record, { ...host.snapshot, nowMs: host.nowMs });
  const asked = create(PlanRunRequestSchema, {
    parent: 'hosts/h1',
    run: { case: 'clean', value: {} },
  });
  const draft = planNow(pass, { kind: 'clean', steps: [] }, asked);
  if ('code' in draft) throw new Error(draft.message);
  return draft.plan.devices[0];
}

const orderFor = (device: agent.DevicePlan['device']) =>
  create(agent.DevicePlanSchema, {
    ...(device === undefined ? {} : { device }),
    method: agent.ErasureMethod.OVERWRITE,
    verification: full,
  });

const hoursOf = (host: Bench) =>
  eraseTimeoutMs(host.record.diskSpeeds, [orderFor(large)], hour) / hour;

test('a disk that was too slow for its deadline has the time that it needs in the next run', () => {
  const host = atErase({}, large);
  const before = hoursOf(host);
  // 40 MB/s: 139 h to write it, as many to read it.
  failsWith(host, { bytesWritten: 10n * terabyte, methodMs: 250_000_000n });
  expect(host.record.diskSpeeds).toMatchObject([
    { device: 'DISK-1', writtenBytesPerSecond: 40_000_000n, readBytesPerSecond: 0n },
  ]);
  expect(hoursOf(host)).toBeGreaterThan(139 * 2);
  expect(hoursOf(host)).toBeGreaterThan(before);
});

test('a plan says how long it takes by what was measured, and that it was', () => {
  const host = atErase({ cleaning: { method: CleaningMethod.OVERWRITE } });
  const usual = planOf(host);
  host.nowMs += 10_000;
  const measured = {
    ...(erased(virtioDisk, agent.ErasureMethod.OVERWRITE) as Outcome),
    endTime: { seconds: BigInt(host.nowMs) / 1_000n },
    ...{ bytesWritten: 67_108_864n, methodMs: 4_000n, verifyMs: 2_000n, readings: 1 },
    bytesOfReadings: 67_108_864n,
  };
  brings(host, measured, { bootId: 'b1' });
  host.report(inspected());
  expect(usual).toMatchObject({ timeFromMeasurement: false });
  const plan = planOf(host);
  expect(plan?.timeFromMeasurement).toBe(true);
  // Read again before, written and read.
  expect(plan?.time && durationMs(plan.time)).toBe(8_000);
});

test.each([
  ['was over at once', { bytesWritten: 1_000_000n, methodMs: 1_999n }],
  ['took no time', { bytesWritten: 1_000_000n }],
  ['wrote nothing', { methodMs: 5_000n }],
  ['is of metadata', { method: METADATA_ONLY, bytesWritten: 10n ** 6n, methodMs: 5_000n }],
  ['the disk did itself', { method: NVME_FORMAT, bytesWritten: 10n ** 6n, methodMs: 5_000n }],
  ['is not the host’s', { device: { serial: 'OTHER' }, bytesWritten: 10n ** 9n, methodMs: 5_000n }],
] as const)('no speed is taken from a phase that %s', (_, outcome) => {
  const host = atErase({}, large);
  failsWith(host, outcome);
  expect(host.record.diskSpeeds).toEqual([]);
});

test('no speed is taken from the evidence of another operation', () => {
  const host = atErase({}, large);
  failsWith(host, { bytesWritten: 10n ** 9n, methodMs: 5_000n }, 'h1.1.1.1');
  expect(host.record.diskSpeeds).toEqual([]);
});

test('a speed that a run did not measure stays; that of a removed disk is dropped', () => {
  const host = atErase({}, large);
  host.record.diskSpeeds = [
    create(store.DiskSpeedSchema, { device: 'DISK-1', readBytesPerSecond: 5n }),
    create(store.DiskSpeedSchema, { device: 'GONE', readBytesPerSecond: 5n }),
  ];
  failsWith(host, { bytesWritten: 10n ** 9n, methodMs: 5_000n });
  expect(host.record.diskSpeeds).toMatchObject([
    { device: 'DISK-1', readBytesPerSecond: 5n, writtenBytesPerSecond: 200_000_000n },
  ]);
});

test.each([
  ['endless', { bytesWritten: 2n, methodMs: 2_000n }, 90e6],
  ['longer than twenty times', { bytesWritten: 9_000_000n, methodMs: 2_000n }, 4.5e6],
  ['too short', { bytesWritten: 2n ** 64n - 1n, methodMs: 2_000n }, 90e6],
] as const)('no value that an agent reports makes a deadline %s', (_, outcome, bytesPerSecond) => {
  const host = atErase({}, large);
  failsWith(host, outcome);
  expect(host.record.diskSpeeds).toHaveLength(1);
  const speeds = slowestSpeed(host.record.diskSpeeds, deviceFactsOf(large));
  expect(speeds.writtenPerSecond).toBe(bytesPerSecond);
  expect(() => toBinary(store.HostRecordSchema, host.record)).not.toThrow();
});

test('whatever sizes and speeds an agent tells, times can be written down', () => {
  const host = atErase({ cleaning: { method: CleaningMethod.OVERWRITE } }, large);
  failsWith(host, { bytesWritten: 2n, methodMs: 2_000n });
  const { time } = planOf(host) ?? {};
  expect(time && Number(time.seconds)).toBe(315_576_000_000);
  expect(() => toJson(DurationSchema, time ?? create(DurationSchema))).not.toThrow();
  const about = { sizeBytes: 2n ** 53n - 1n, transport: Transport.MMC };
  const card = create(StorageDeviceSchema, { ...large, ...about });
  const cards = Array.from({ length: 256 }, () => orderFor(card));
  const slow = { readBytesPerSecond: 300_000n, writtenBytesPerSecond: 300_000n };
  const known = [create(store.DiskSpeedSchema, { device: 'DISK-1', ...slow })];
  const toCalendar = (ms: number) => toJson(TimestampSchema, timestampFromMs(host.nowMs + ms));
  expect(() => toCalendar(eraseTimeoutMs(known, cards, hour))).not.toThrow();
  expect(() => toCalendar(readTimeoutMs(known, cards, hour))).not.toThrow();
});

test('a time is said to be measured only where all that it follows from was', () => {
  const host = atErase({ cleaning: { method: CleaningMethod.OVERWRITE } });
  const says = (speed: MessageInitShape<typeof store.DiskSpeedSchema>) => {
    host.record.diskSpeeds = [create(store.DiskSpeedSchema, { device: 'DISK-1', ...speed })];
    return planOf(host)?.timeFromMeasurement;
  };
  expect(says({ readsPerSecond: 100 })).toBe(false);
  expect(says({ readBytesPerSecond: 10n ** 8n, readsPerSecond: 100 })).toBe(false);
  expect(says({ readBytesPerSecond: 10n ** 8n, writtenBytesPerSecond: 10n ** 8n })).toBe(true);
});

test('a reading after a power cycle is measured too', () => {
  const host = available();
  host.request({ kind: 'inspect' });
  boot(host);
  host.nowMs += 10_000;
  host.report(inspected());
  const endTime = timestampFromMs(host.nowMs);
  proves(host, 'b2', { endTime, verifyMs: 5_000n, readings: 2, bytesOfReadings: 134_217_728n });
  expect(host.record.diskSpeeds).toMatchObject([
    { device: 'DISK-1', readBytesPerSecond: 26_843_545n, writtenBytesPerSecond: 0n },
  ]);
});

test('reading again has the time that a slow disk needs', () => {
  const slow = create(store.DiskSpeedSchema, { device: 'DISK-1', readBytesPerSecond: 30_000_000n });
  const order = [orderFor(large)];
  expect(readTimeoutMs([slow], order, 0)).toBe((20e12 / 10e6) * 1_000);
});

test('every reading has its time: again after a delay, and other places', () => {
  const known = [create(store.DiskSpeedSchema, { device: 'DISK-1', readsPerSecond: 30 })];
  const sampled = { level: agent.VerificationLevel.SAMPLED, places: 400_000n };
  const rereadDelay = durationFromMs(1_500);
  type More = Partial<Pick<agent.DevicePlan, 'erasedSeed' | 'rereadDelay'>> & {
    readonly verification: Readonly<{ level: agent.VerificationLevel; places?: bigint }>;
  };
  const order = ({ verification, ...more }: More) =>
    create(agent.DevicePlanSchema, {
      ...{ ...orderFor(large), method: NVME_FORMAT, ...more },
      verification: create(agent.VerificationSchema, verification),
    });
  const once = readTimeoutMs(known, [order({ verification: sampled })], 0);
  expect(once).toBeGreaterThan((400_000 / 10) * 1_000);
  const times = (more: More) => readTimeoutMs(known, [order(more)], 0);
  // The same places and as many others.
  expect(times({ verification: sampled, erasedSeed: seed })).toBeCloseTo(2 * once, -1);
  expect(times({ verification: sampled, rereadDelay })).toBeCloseTo(3 * once, -1);
  const whole = times({ verification: full });
  expect(times({ verification: full, erasedSeed: seed })).toBe(whole);
  expect(times({ verification: full, rereadDelay })).toBeCloseTo(2 * whole, -1);
});

test('a plan counts the reading after the delay where a disk says only that it dropped all', () => {
  const dropped = create(StorageDeviceSchema, { ...large, discardSupported: true });
  const host = atErase({}, dropped);
  const plan = planOf(host);
  expect(plan).toMatchObject({
    verification: '46050 places, again after 10 s: 46050 places and as many new ones',
    reads: 3n * 46_050n,
  });
  const overwritten = planOf(atErase({}, large));
  expect(overwritten?.verification).toBe('whole');
});
