import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  defaultGovernorLimits,
  defaultIpmitoolOptions,
  defaultReadBackTimings,
  type Firmware,
  Governor,
} from '@rackwright/bmc';
import {
  type ImitatedBmc,
  imitatedBmc,
  imitatedIpmitool,
  VirtualClock,
} from '@rackwright/bmc/conformance';
import { IpmiDriver } from '@rackwright/bmc/drivers';
import { agent, asRunNumber, BmcIdentitySchema, deploymentIdOf } from '@rackwright/messages';
import { quietLog } from '@rackwright/platform/testing';
import type { FinalResult } from '@rackwright/results';
import { describe, expect, test } from 'vitest';
import { defaultDispatcherLimits, noHandOffs, RunnerDispatcher } from '../runner-gateway/index.ts';
import { testSigner } from '../runner-gateway/testing.ts';
import { AttemptEnd, type OperationContext } from '../session/index.ts';
import { createExecutor } from './executor.ts';
import type { BmcDrivers, BootFirmware } from './index.ts';

const { RunStepSchema } = agent;
const guid = Array.from({ length: 16 }, (_, index) => index * 17);
const identity = { guid: Uint8Array.from(guid), serial: 'HOST-1' };
const fru = ' Product Serial : HOST-1\n';
const access = {
  address: '192.0.2.1',
  credential: 'credentials/rack',
  credentialVersion: 3n,
  protocol: 'ipmi',
};

/** An executor with one BMC; `calls` lists its calls of the session, in order. */
function setUp(changes: Partial<ImitatedBmc> = {}, hostFirmware: Firmware = 'bios') {
  const clock = new VirtualClock();
  const bmc = imitatedBmc({ fru, ...changes });
  const calls: string[] = [];
  const drivers: BmcDrivers = {
    firmware: 'bios',
    forget: (address, port) => calls.push(`forget ${address}:${port}`),
    forgetRefusals: () => calls.push('forget refusals'),
    driver: ({ credential, ...endpoint }) =>
      new IpmiDriver({
        target: {
          ...endpoint,
          user: credential.username,
          password: credential.password,
          credential: `${credential.name}@${credential.version}`,
        },
        governor: new Governor(clock, defaultGovernorLimits, () => {}),
        exec: imitatedIpmitool(clock, bmc),
        clock,
        ipmitool: defaultIpmitoolOptions,
        readBack: defaultReadBackTimings,
      }),
  };
  const orders = new RunnerDispatcher({
    clock,
    log: quietLog,
    signer: testSigner(),
    operationState: () => 'unknown',
    handOffs: noHandOffs,
    limits: defaultDispatcherLimits,
  });
  const context: OperationContext = {
    signal: new AbortController().signal,
    begin: async () => void calls.push(`begin ${bmc.power} ${bmc.bootFlags[1]}`),
    reportProgress: () => {},
    credential: async (name, version) => ({ name, version, username: 'u', password: 'imitated' }),
    isLeaseValid: () => true,
    leaseLeftMs: () => 9_000,
    brake: () => undefined,
    remainingMs: () => Number.POSITIVE_INFINITY,
    openGrant: async ({ macs, expiresAtMs, rescue }) => {
      calls.push(`open ${macs.join()} ${expiresAtMs} ${bmc.power}${rescue ? ' rescue' : ''}`);
      const grant = { operationId: 'op', hostUid: 'uid', hostName: 'h', bootToken: 'token' };
      return { ...grant, macs, openedAtMs: clock.nowMs(), expiresAtMs };
    },
    closeGrants: async () => void calls.push(`close ${bmc.power}`),
  };
  const bootFirmware: BootFirmware = (hostUid) =>
    hostUid === 'unknown' ? { problem: 'no such profile' } : { firmware: hostFirmware };
  const executor = createExecutor({ drivers, orders, clock, log: quietLog, bootFirmware });
  const execute = (kind: Kind, { hostUid } = { hostUid: 'uid' }): Promise<FinalResult> => {
    const operation = create(agent.OperationSchema, { id: 'op', hostUid, kind });
    return clock.settle(executor.execute(operation, context));
  };
  const setPower = (
    value: MessageInitShape<typeof agent.SetPowerSchema>,
    whose = { hostUid: 'uid' },
  ) => {
    const request = create(agent.SetPowerSchema, {
      bmc: create(agent.BmcAccessSchema, access),
      expectedIdentity: create(BmcIdentitySchema, identity),
      ...value,
    });
    return execute({ case: 'setPower', value: request }, whose);
  };
  return { bmc, calls, clock, context, execute, executor, setPower };
}

type Kind = NonNullable<MessageInitShape<typeof agent.OperationSchema>['kind']>;

const toRunner = {
  on: true,
  bootFrom: agent.BootTarget.RUNNER,
  bootMacs: ['52:54:00:00:00:01'],
  grantExpireTime: timestampFromMs(1_200_000),
};

describe('VerifyAccess', () => {
  test('reports identity and power without beginning anything', async () => {
    const { execute, calls } = setUp();
    const result = await execute({ case: 'verifyAccess', value: { bmc: access } });
    expect(result).toMatchObject({
      kind: 'complete',
      observations: { bmcIdentity: identity, poweredOn: false },
    });
    expect(calls).toEqual([]);
  });

  test('fails for a wrong password and cannot tell for a silent BMC', async () => {
    const wrong = setUp({ password: 'another' });
    expect(await wrong.execute({ case: 'verifyAccess', value: { bmc: access } })).toMatchObject({
      kind: 'failed',
      type: 'authentication',
    });
    const silent = setUp({ silent: true });
    expect(await silent.execute({ case: 'verifyAccess', value: { bmc: access } })).toMatchObject({
      kind: 'transientError',
      cause: 'unreachable',
    });
  });

  test('an access over a protocol that this agent does not speak is unsupported', async () => {
    const { execute } = setUp();
    const bmc = { ...access, protocol: 'telepathy' };
    await expect(execute({ case: 'verifyAccess', value: { bmc } })).rejects.toThrow(
      /does not speak/,
    );
  });

  test('an access without a BMC is an invalid argument', async () => {
    const { execute } = setUp();
    await expect(execute({ case: 'verifyAccess', value: {} })).rejects.toThrow(AttemptEnd);
  });
});

describe('SetPower', () => {
  test('opens the grant and sets the override before it switches on', async () => {
    const { setPower, calls, bmc } = setUp();
    expect(await setPower(toRunner)).toMatchObject({
      kind: 'complete',
      observations: { poweredOn: true },
    });
    expect(calls).toEqual(['begin off 0', 'open 52:54:00:00:00:01 1200000 off']);
    expect(bmc).toMatchObject({ power: 'on', bootFlags: [0x80, 4] });
  });

  test('orders the boot for the firmware that the host has', async () => {
    const { setPower, bmc } = setUp({}, 'uefi');
    expect(await setPower(toRunner)).toMatchObject({ kind: 'complete' });
    expect(bmc.bootFlags).toEqual([0xa0, 4]);
  });

  test('a host whose boot profile nobody knows is told nothing, and stays off', async () => {
    const { setPower, calls, bmc } = setUp();
    const result = await setPower(toRunner, { hostUid: 'unknown' });
    expect(result).toMatchObject({ kind: 'failed', message: 'no such profile' });
    expect(calls).toEqual([]);
    expect(bmc).toMatchObject({ power: 'off', bootFlags: [0, 0], switches: 0 });
  });

  test('sends nothing to another BMC, and says what it is', async () => {
    for (const expectedIdentity of [
      { ...identity, guid: new Uint8Array(16).fill(7).with(0, 1) },
      { ...identity, serial: 'HOST-2' },
      { ...identity, boardSerial: 'BOARD-1' },
    ]) {
      const { setPower, calls, bmc } = setUp();
      const result = await setPower({ ...toRunner, expectedIdentity });
      expect(result).toMatchObject({
        kind: 'failed',
        type: 'identityMismatch',
        observations: { bmcIdentity: identity },
      });
      expect(calls).toEqual([]);
      expect(bmc).toMatchObject({ power: 'off', bootFlags: [0, 0], switches: 0 });
    }
  });

  test('does not hold filler words against a BMC', async () => {
    const { setPower } = setUp();
    const expectedIdentity = { guid: new Uint8Array(16), serial: 'To be filled by O.E.M.' };
    expect(await setPower({ ...toRunner, expectedIdentity })).toMatchObject({ kind: 'complete' });
  });

  test('answers a host that is on with a conflict when it shall boot from elsewhere', async () => {
    const { setPower, calls, bmc } = setUp({ power: 'on' });
    expect(await setPower(toRunner)).toMatchObject({
      kind: 'retryAfter',
      reason: 'invalidState',
    });
    expect(calls).toEqual([]);
    expect(bmc.switches).toBe(0);
  });

  test('boots into rescue as into the runner, by a grant that says so', async () => {
    const { setPower, calls, bmc } = setUp();
    const toRescue = { ...toRunner, bootFrom: agent.BootTarget.RESCUE };
    expect(await setPower(toRescue)).toMatchObject({ kind: 'complete' });
    expect(calls).toEqual(['begin off 0', 'open 52:54:00:00:00:01 1200000 off rescue']);
    expect(bmc.power).toBe('on');
  });

  test('closes the grant again when the BMC does not do it', async () => {
    const { setPower, calls } = setUp({ lying: true });
    expect(await setPower(toRunner)).toMatchObject({ kind: 'failed', type: 'notApplied' });
    expect(calls.at(-1)).toBe('close off');
  });

  test('closes grants before it powers off, or on for the disk', async () => {
    const off = setUp({ power: 'on' });
    expect(await off.setPower({ on: false })).toMatchObject({ kind: 'complete' });
    expect(off.calls).toEqual(['begin on 0', 'close on']);
    expect(off.bmc.power).toBe('off');
    const disk = setUp();
    await disk.setPower({ on: true, bootFrom: agent.BootTarget.DISK });
    expect(disk.calls).toEqual(['begin off 0', 'close off']);
    expect(disk.bmc.bootFlags).toEqual([0x80, 8]);
  });

  test('boots the image over the network without a grant: no runner may start then', async () => {
    const { setPower, calls, bmc } = setUp();
    await setPower({ on: true, bootFrom: agent.BootTarget.IMAGE });
    expect(calls).toEqual(['begin off 0', 'close off']);
    expect(bmc.bootFlags).toEqual([0x80, 4]);
    expect(bmc.power).toBe('on');
  });

  test('refuses a step of its own that it does not have', async () => {
    const { calls, execute } = setUp();
    const step = 'deploy.await_nothing';
    const fields = {
      step,
      deployment: { id: deploymentIdOf('uid', asRunNumber(1)) },
      destructive: false,
    };
    const value = create(agent.RunStepSchema, fields);
    expect(await execute({ case: 'runStep', value })).toMatchObject({
      ...{ kind: 'failed', type: 'unsupported' },
      message: `this agent has no step ${step}; it has none`,
    });
    expect(calls).toEqual([]);
  });

  test('asserts a state: asked again it switches nothing', async () => {
    const { setPower, bmc } = setUp({ power: 'off' });
    expect(await setPower({ on: false })).toMatchObject({ kind: 'complete' });
    expect(bmc.switches).toBe(0);
  });

  test('a SetPower without a state, or with an unknown boot target, does nothing', async () => {
    const { setPower, calls } = setUp();
    expect(await setPower({})).toMatchObject({ kind: 'failed', type: 'invalidArgument' });
    const unknown = { on: true, bootFrom: 99 as agent.BootTarget };
    expect(await setPower(unknown)).toMatchObject({ kind: 'failed', type: 'unsupported' });
    expect(calls).toEqual([]);
  });

  test('touches nothing when it may not begin', async () => {
    const { setPower, bmc, context } = setUp();
    const refusal: FinalResult = { kind: 'failed', type: 'deadline', message: 'too late' };
    Object.assign(context, { begin: () => Promise.reject(new AttemptEnd(refusal)) });
    await expect(setPower(toRunner)).rejects.toThrow('too late');
    expect(bmc).toMatchObject({ power: 'off', bootFlags: [0, 0] });
  });
});

describe('RunStep out of band', () => {
  const clear = {
    step: 'management.clear_event_log',
    mode: agent.StepMode.RUN,
    destructive: false,
    bmc: access,
    expectedIdentity: identity,
  };
  const runStep = (rig: ReturnType<typeof setUp>, value: MessageInitShape<typeof RunStepSchema>) =>
    rig.execute({ case: 'runStep', value: create(RunStepSchema, value) });

  test('clears the event log once its intent is durable, without any runner', async () => {
    const rig = setUp({ logEntries: 700 });
    expect(await runStep(rig, clear)).toEqual({ kind: 'complete' });
    expect(rig.bmc.logEntries).toBe(1);
    expect(rig.calls).toEqual(['begin off 0']);
    expect(rig.bmc.switches).toBe(0);
  });

  test('sends nothing to another BMC', async () => {
    const rig = setUp({ logEntries: 700 });
    const expectedIdentity = { ...identity, serial: 'HOST-2' };
    const result = await runStep(rig, { ...clear, expectedIdentity });
    expect(result).toMatchObject({ kind: 'failed', type: 'identityMismatch' });
    expect(rig.bmc.logEntries).toBe(700);
    expect(rig.calls).toEqual([]);
  });

  test('trusts no BMC that says yes and does nothing, and none that has no log', async () => {
    const lying = setUp({ logEntries: 700, lying: true });
    expect(await runStep(lying, clear)).toMatchObject({ kind: 'failed', type: 'notApplied' });
    const without = setUp({ logEntries: undefined });
    expect(await runStep(without, clear)).toMatchObject({ kind: 'failed', type: 'unsupported' });
  });

  test('runs no step that its Hello does not name, and checks none', async () => {
    const rig = setUp();
    expect(rig.executor.steps?.map(({ name }) => name)).toContain(clear.step);
    const other = { ...clear, step: 'management.polish' };
    expect(await runStep(rig, other)).toMatchObject({ kind: 'failed', type: 'unsupported' });
    const check = { ...clear, mode: agent.StepMode.CHECK };
    expect(await runStep(rig, check)).toMatchObject({ kind: 'failed', type: 'unsupported' });
    expect(rig.calls).toEqual([]);
  });

  test('a step that was cut short is left to the control plane', () => {
    const { executor, context } = setUp();
    const kind = { case: 'runStep', value: create(RunStepSchema, clear) } as const;
    const operation = create(agent.OperationSchema, { id: 'op', kind });
    expect(executor.resume(operation, context)).toBe('interrupted');
  });
});

describe('the executor', () => {
  test('drops what it knows of a forgotten host', async () => {
    const { execute, executor, calls } = setUp();
    await execute({ case: 'verifyAccess', value: { bmc: access } });
    await executor.forgetHost('uid');
    await executor.forgetHost('uid');
    expect(calls).toEqual(['forget 192.0.2.1:623']);
  });

  test('lets the BMCs forget refusals once credentials mean other passwords', () => {
    const { executor, calls } = setUp();
    executor.credentialsStartedOver?.();
    expect(calls).toEqual(['forget refusals']);
  });

  test('keeps what it knows of a BMC that another host has by now', async () => {
    const { execute, executor, calls } = setUp();
    await execute({ case: 'verifyAccess', value: { bmc: access } });
    await execute({ case: 'verifyAccess', value: { bmc: access } }, { hostUid: 'anew' });
    await executor.forgetHost('uid');
    expect(calls).toEqual([]);
    await executor.forgetHost('anew');
    expect(calls).toEqual(['forget 192.0.2.1:623']);
  });

  test('leaves interrupted work on a BMC to the control plane', () => {
    const { executor, context } = setUp();
    const kind = { case: 'setPower', value: {} } as const;
    const operation = create(agent.OperationSchema, { id: 'op', kind });
    expect(executor.resume(operation, context)).toBe('interrupted');
  });
});
