/** Operations on Redfish BMCs: from the operation's own words to a machine that is switched. */
import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { agent, StorageSignKind, StorageSource } from '@rackwright/messages';
import { nodeClock, nodeExec, nodeHttpClient } from '@rackwright/platform/node';
import type { FinalResult } from '@rackwright/results';
import {
  type BootChoice,
  type RedfishBmc,
  type RedfishFault,
  type RedfishInventory,
  startRedfishBmc,
} from '@rackwright/sim/redfish';
import { afterEach, describe, expect, test } from 'vitest';
import { createBmcDrivers } from './bmc-drivers.ts';
import { parseConfig } from './config.ts';
import { createExecutor } from './operations/index.ts';
import { defaultDeskLimits, noHandOffs, RunnerDesk } from './runner-gateway/index.ts';
import { quietLog, testSigner } from './runner-gateway/testing.ts';
import type { OperationContext } from './session/index.ts';

const clock = nodeClock();
const config = parseConfig(
  JSON.stringify({
    serverAddress: '127.0.0.1',
    bmc: {
      spacingMs: 0,
      readBackWindowMs: 10_000,
      readBackPollMs: 50,
      redfishRequestTimeoutMs: 10_000,
      authenticationFailuresMax: 100,
    },
  }),
);
const bmcs: RedfishBmc[] = [];

afterEach(async () => {
  await Promise.all(bmcs.splice(0).map((bmc) => bmc.close()));
});

async function startHost(port = 0, inventory: RedfishInventory = {}) {
  const boots: BootChoice[] = [];
  let isOn = false;
  const bmc = await startRedfishBmc({
    port,
    user: 'u',
    password: 'secret',
    identity: {
      uuid: '8f14e45f-ceea-467a-9c2b-3d0e55aa0f01',
      serial: 'HOST-1',
      manufacturer: 'Rackwright',
      model: 'Machine',
    },
    machine: {
      powerOn: (boot) => {
        isOn = true;
        boots.push(boot);
      },
      powerOff: () => {
        isOn = false;
      },
      isOn: () => isOn,
    },
    habits: { powerDelayMs: [0, 200] },
    inventory,
  });
  bmcs.push(bmc);
  return { bmc, boots };
}

function makeExecutor() {
  const parts = { clock, exec: nodeExec(), httpClient: nodeHttpClient(), log: quietLog };
  return createExecutor({
    clock,
    drivers: createBmcDrivers(config.bmc, parts),
    orders: new RunnerDesk({
      clock,
      log: quietLog,
      signer: testSigner(),
      operationState: () => 'unknown',
      handOffs: noHandOffs,
      limits: defaultDeskLimits,
    }),
  });
}

const context: OperationContext = {
  signal: new AbortController().signal,
  begin: async () => {},
  continuing: () => {},
  credential: async (name, version) => ({ name, version, username: 'u', password: 'secret' }),
  leaseValid: () => true,
  leaseLeftMs: () => 9_000,
  frozen: () => '',
  remainingMs: () => Number.POSITIVE_INFINITY,
  openGrant: async ({ macs, expiresAtMs }) => {
    const grant = { operationId: 'op', hostUid: 'uid', hostName: 'h', bootToken: 'token' };
    return { ...grant, macs, openedAtMs: clock.nowMs(), expiresAtMs };
  },
  closeGrants: async () => {},
};

const driveA = {
  serial: 'DRIVE-A',
  model: 'Round',
  manufacturer: 'Maker',
  capacityBytes: 1_000_000_000,
  media: 'SSD',
  protocol: 'NVMe',
} as const;
const driveB = { ...driveA, serial: 'DRIVE-B' } as const;

function drivesOf(result: FinalResult): unknown {
  return result.kind === 'complete' ? result.observations?.bmcDrives : result;
}

type Kind = NonNullable<MessageInitShape<typeof agent.OperationSchema>['kind']>;

function execute(kind: Kind): Promise<FinalResult> {
  const operation = create(agent.OperationSchema, { id: 'op', hostUid: 'uid', kind });
  return makeExecutor().execute(operation, context);
}

function access({ address, port }: RedfishBmc, certificateSha256: string) {
  const credential = { credential: 'credentials/rack', credentialVersion: 3n };
  return { address, port, protocol: 'redfish', certificateSha256, ...credential };
}

describe('a Redfish BMC', () => {
  test('is verified, and its certificate told for pinning', async () => {
    const { bmc } = await startHost();
    const result = await execute({ case: 'verifyAccess', value: { bmc: access(bmc, '') } });
    const guid = new Uint8Array(Buffer.from('8f14e45fceea467a9c2b3d0e55aa0f01', 'hex'));
    const { certificateSha256 } = bmc;
    expect(result).toMatchObject({
      kind: 'complete',
      observations: {
        bmcIdentity: { guid, serial: 'HOST-1', certificateSha256 },
        poweredOn: false,
      },
    });
  });

  test('is asked for its drives with the verification', async () => {
    const { bmc } = await startHost(0, { drives: [driveB, driveA], emptyBays: 2 });
    const result = await execute({ case: 'verifyAccess', value: { bmc: access(bmc, '') } });
    expect(drivesOf(result)).toMatchObject({
      available: true,
      complete: true,
      drives: [
        { source: StorageSource.BMC, kind: StorageSignKind.DRIVE, serial: 'DRIVE-A' },
        { name: 'Drive 1', serial: 'DRIVE-B', model: 'Round', sizeBytes: 1_000_000_000n },
      ],
    });
  });

  test('without drives has no list, which is no error', async () => {
    const { bmc } = await startHost();
    const result = await execute({ case: 'verifyAccess', value: { bmc: access(bmc, '') } });
    expect(drivesOf(result)).toMatchObject({
      available: false,
      unavailableReason: 'the BMC lists no drives',
    });
  });

  test('switches its host on, booting from the network', async () => {
    const { bmc, boots } = await startHost();
    const bootFrom = agent.BootTarget.RUNNER;
    const value = { bmc: access(bmc, bmc.certificateSha256), on: true, bootFrom };
    expect(await execute({ case: 'setPower', value })).toMatchObject({ kind: 'complete' });
    expect(boots).toEqual([{ device: 'pxe', mode: 'uefi' }]);
  });

  test('that another took the place of gets no credential', async () => {
    const { bmc } = await startHost();
    const { certificateSha256: pinned, port } = bmc;
    await bmc.close();
    const { bmc: other } = await startHost(port);
    const result = await execute({ case: 'verifyAccess', value: { bmc: access(other, pinned) } });
    expect(result).toMatchObject({ kind: 'failed', type: 'certificateMismatch' });
    expect(other.calls()).toEqual([]);
  });

  const faults: readonly (readonly [RedfishFault, object])[] = [
    [{ kind: 'wrongPassword' }, { kind: 'failed', type: 'authentication' }],
    [
      { kind: 'lockedOut', forMs: 60_000 },
      { kind: 'failed', type: 'lockedOut' },
    ],
    [{ kind: 'rubbish' }, { kind: 'failed', type: 'protocol' }],
    [{ kind: 'yesButNothing' }, { kind: 'failed', type: 'notApplied' }],
    [
      { kind: 'silent', how: 'hang' },
      { kind: 'transientError', cause: 'unreachable' },
    ],
    [
      { kind: 'silent', how: 'drop' },
      { kind: 'transientError', cause: 'unreachable' },
    ],
    [{ kind: 'slow', delayMs: 100 }, { kind: 'complete' }],
  ];
  for (const [fault, expected] of faults) {
    test(`that is broken by ${JSON.stringify(fault)} is told apart`, async () => {
      const { bmc } = await startHost();
      bmc.setFault(fault);
      const result = await execute({ case: 'setPower', value: { bmc: access(bmc, ''), on: true } });
      expect(result).toMatchObject(expected);
      expect(JSON.stringify(result)).not.toContain('secret');
    });
  }
});
