import { create } from '@bufbuild/protobuf';
import type { BmcDrive, BmcDriver, BmcResult } from '@rackwright/bmc';
import { VirtualClock } from '@rackwright/bmc/conformance';
import { agent, BmcIdentitySchema, BootMediumSchema } from '@rackwright/messages';
import { quietLog } from '@rackwright/platform/testing';
import type { FinalResult } from '@rackwright/results';
import { describe, expect, test } from 'vitest';
import type { RunnerOrder, RunnerOrders } from '../runner-gateway/index.ts';
import type { OperationContext } from '../session/index.ts';
import { DriveLists } from './drive-lists.ts';
import { inspect } from './inspect.ts';

const drive: BmcDrive = { name: 'Bay 1', serial: 'A', capacityBytes: 960 };
function ok<T>(value: T): BmcResult<T> {
  return { kind: 'ok', value };
}

const never = new Promise<never>(() => {});

type ReadDrives = (signal: AbortSignal | undefined) => Promise<BmcResult<readonly BmcDrive[]>>;

/** A BMC that is asked through `DriveLists`; undefined: its protocol lists no drives. */
function setUp(readDrives: ReadDrives | undefined, serial = 'HOST-1') {
  const clock = new VirtualClock();
  const asked: string[] = [];
  const unused = () => Promise.reject(new Error('not asked here'));
  const driver: BmcDriver = {
    readIdentity: async () => ok({ serial }),
    powerState: unused,
    readPowerAndHealth: unused,
    setIndicator: unused,
    resetBmc: unused,
    setBootOverride: unused,
    setPower: unused,
    softOff: unused,
    clearEventLog: unused,
    ...(readDrives === undefined
      ? {}
      : {
          readInventory: async (parts, signal) => {
            asked.push(parts.join());
            const read = await readDrives(signal);
            if (read.kind !== 'ok') return read;
            const lists = { processors: [], memory: [], interfaces: [], firmware: [] };
            return ok({ ...lists, drives: read.value, complete: true });
          },
        }),
  };
  const forgets = { forget: () => {}, forgetRefusals: () => {} };
  const drivers = { firmware: 'bios', ...forgets, driver: () => driver } as const;
  const context = {
    signal: new AbortController().signal,
    remainingMs: () => Number.POSITIVE_INFINITY,
    credential: async (name: string, version: bigint) => {
      return { name, version, username: 'u', password: 'p' };
    },
  } as OperationContext;
  return { clock, asked, context, driveLists: new DriveLists(drivers, clock, quietLog) };
}

function request(bootOperationId = 'boot') {
  return create(agent.InspectSchema, {
    bootOperationId,
    bmc: { address: '192.0.2.1', credential: 'credentials/rack', protocol: 'redfish' },
    expectedIdentity: create(BmcIdentitySchema, { serial: 'HOST-1' }),
  });
}

describe('the list of drives', () => {
  test('is read once for a boot, for a while, and again for the next one', async () => {
    const { driveLists, context, asked, clock } = setUp(async () => ok([drive]));
    const read = (boot: string) =>
      clock.settle(driveLists.readForInspection('uid', request(boot), context));
    expect(await read('boot')).toMatchObject({
      bmcDrives: { available: true, drives: [{ serial: 'A' }] },
      bmcParts: { complete: true },
    });
    await read('boot');
    expect(asked).toEqual(['drives', 'memory,interfaces,firmware']);
    await read('next');
    expect(asked).toHaveLength(4);
    await clock.settle(new Promise<void>((resolve) => void clock.after(300_000, resolve)));
    await read('next');
    expect(asked).toHaveLength(6);
  });

  test('a list of another BMC, of a broken one or of none is not available', async () => {
    const other = setUp(async () => ok([drive]), 'HOST-2');
    const { clock } = other;
    expect(
      await clock.settle(other.driveLists.readForInspection('uid', request(), other.context)),
    ).toMatchObject({
      bmcDrives: {
        available: false,
        unavailableReason: expect.stringContaining('another BMC answers'),
      },
    });
    const broken = setUp(() => Promise.reject(new Error('broken')));
    expect(
      await broken.clock.settle(
        broken.driveLists.readForInspection('uid', request(), broken.context),
      ),
    ).toMatchObject({ bmcDrives: { available: false, unavailableReason: 'broken' } });
    const ipmi = setUp(undefined);
    expect(await ipmi.driveLists.readForInspection('uid', request(), ipmi.context)).toBeUndefined();
  });

  test('a list that never comes is given up, and the inspection goes on without it', async () => {
    const { driveLists, context, clock } = setUp(
      (signal) =>
        new Promise((resolve) => {
          const gone = { kind: 'transient', reason: 'cancelled', message: 'given up' } as const;
          signal?.addEventListener('abort', () => resolve({ ...gone, backendText: '' }));
        }),
    );
    const observations = create(agent.ObservationsSchema, { inventory: { bootId: 'b' } });
    const orders = { run: async () => ({ kind: 'complete', observations }) } as unknown;
    const parts = { orders: orders as RunnerOrders, driveLists };
    const operation = create(agent.OperationSchema, { id: 'uid/1/2/1', hostUid: 'uid' });
    const result = await clock.settle(inspect(parts, operation, request(), context));
    expect(result).toMatchObject({
      kind: 'complete',
      observations: {
        inventory: { bootId: 'b' },
        bmcDrives: { available: false, unavailableReason: 'given up' },
        bmcParts: { complete: false },
      },
    });
  });

  test('is asked for beside the runner, which is told of boot media and of no BMC', async () => {
    const { driveLists, context, clock } = setUp(async () => ok([drive]));
    const ordered: unknown[] = [];
    const failed: FinalResult = { kind: 'failed', type: 'cancelled', message: 'stopped' };
    const orders = {
      run: async ({ order }: RunnerOrder) => {
        ordered.push(order.value);
        return failed;
      },
    } as unknown;
    const parts = { orders: orders as RunnerOrders, driveLists };
    const operation = create(agent.OperationSchema, { id: 'uid/1/2/1', hostUid: 'uid' });
    const medium = { sha256: 'ab'.repeat(32), sizeBytes: 1n };
    const asked = { ...request(), bootMedia: [create(BootMediumSchema, medium)] };
    await clock.settle(inspect(parts, operation, asked, context));
    expect(ordered).toMatchObject([{ bootMedia: [medium] }]);
    expect(ordered).not.toMatchObject([{ bmc: {} }]);
  });

  test('is not waited for when the inspection has failed', async () => {
    const { driveLists, context, clock } = setUp(() => never);
    const failed: FinalResult = { kind: 'failed', type: 'cancelled', message: 'stopped' };
    const orders = { run: async () => failed } as unknown;
    const parts = { orders: orders as RunnerOrders, driveLists };
    const operation = create(agent.OperationSchema, { id: 'uid/1/2/1', hostUid: 'uid' });
    const before = clock.nowMs();
    expect(await inspect(parts, operation, request(), context)).toBe(failed);
    expect(clock.nowMs()).toBe(before);
  });
});
