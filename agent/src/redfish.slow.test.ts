/** Operations on Redfish BMCs: from the operation's own words to a machine that is switched. */
import { agent, StorageSignKind, StorageSource } from '@rackwright/messages';
import type { FinalResult } from '@rackwright/results';
import type {
  PowerOnBoot,
  RecordedCall,
  RedfishFault,
  RedfishInventory,
} from '@rackwright/sim/redfish';
import { describe, expect, test } from 'vitest';
import { access, startBmc, startExecutor } from './redfish.fixture.ts';

async function startHost(port = 0, inventory: RedfishInventory = {}) {
  const boots: PowerOnBoot[] = [];
  const options = { port, habits: { powerDelayMs: [0, 200] as const }, inventory };
  const bmc = await startBmc(options, { on: (boot) => boots.push(boot) });
  const execute = startExecutor({ readBackWindowMs: 10_000, authenticationFailuresMax: 100 });
  return { bmc, boots, execute };
}

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

describe('a Redfish BMC', () => {
  test('is verified, and its certificate told for pinning', async () => {
    const { bmc, execute } = await startHost();
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
    const { bmc, execute } = await startHost(0, { drives: [driveB, driveA], emptyBays: 2 });
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

  test('a BMC without drives has no list, which is no error', async () => {
    const { bmc, execute } = await startHost();
    const result = await execute({ case: 'verifyAccess', value: { bmc: access(bmc, '') } });
    expect(drivesOf(result)).toMatchObject({
      available: false,
      unavailableReason: 'the BMC lists no drives',
    });
  });

  test('switches its host on, booting from the network', async () => {
    const { bmc, boots, execute } = await startHost();
    const bootFrom = agent.BootTarget.RUNNER;
    const value = { bmc: access(bmc, bmc.certificateSha256), on: true, bootFrom };
    expect(await execute({ case: 'setPower', value })).toMatchObject({ kind: 'complete' });
    expect(boots).toEqual([{ device: 'pxe', mode: 'uefi' }]);
  });

  test('a BMC that another took the place of gets no credential', async () => {
    const { bmc } = await startHost();
    const { certificateSha256: pinned, port } = bmc;
    await bmc.close();
    const { bmc: other, execute } = await startHost(port);
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
    test(`a BMC that is broken by ${JSON.stringify(fault)} is told apart`, async () => {
      const { bmc, execute } = await startHost();
      bmc.setFault(fault);
      const result = await execute({ case: 'setPower', value: { bmc: access(bmc, ''), on: true } });
      expect(result).toMatchObject(expected);
      expect(JSON.stringify(result)).not.toContain('secret');
    });
  }
});

describe('a step that deletes RAID volumes', () => {
  const why = 'racks/r1 is frozen by user:ann: a fire drill';

  /** Two volumes, none of which is to stay; the lease is valid until a call that ends it. */
  async function deleteAll(ends: (call: RecordedCall) => boolean, brake?: string) {
    const bmc = await startBmc({
      inventory: { drives: [driveA, driveB] },
      raid: {
        volumes: [
          { raidType: 'RAID0', drives: [1] },
          { raidType: 'RAID0', drives: [2] },
        ],
      },
      habits: { volumeMs: 1, volumeAnswers: 'nothing' },
    });
    const leaseValid = () => !bmc.calls().some(ends);
    const execute = startExecutor(
      {},
      {
        isLeaseValid: leaseValid,
        brake: () => (brake === undefined || leaseValid() ? undefined : { text: brake }),
      },
    );
    const step = { step: 'raid.apply', arguments: { controller: '1', volumes: 'none' } };
    const value = { ...step, mode: agent.StepMode.RUN, bmc: access(bmc, bmc.certificateSha256) };
    const result = await execute({ case: 'runStep', value });
    return { result, volumes: bmc.volumes() };
  }

  const atFirstDrive = ({ path }: RecordedCall) => path.endsWith('/Drives/1');
  const atFirstDeletion = ({ method, path }: RecordedCall) =>
    method === 'DELETE' && path.includes('/Volumes/');

  test('deletes them while its lease is valid', async () => {
    const { result, volumes } = await deleteAll(() => false);
    expect(result).toMatchObject({ kind: 'complete' });
    expect(volumes).toEqual({ orders: 2, layout: [] });
  });

  test('deletes none when the lease ends while the drives are read', async () => {
    const { result, volumes } = await deleteAll(atFirstDrive);
    expect(result).toMatchObject({ kind: 'retryAfter', reason: 'notReady' });
    expect(volumes).toEqual({ orders: 0, layout: ['RAID0 1', 'RAID0 2'] });
  });

  test('deletes none after a freeze, and is ordered anew after it', async () => {
    const { result, volumes } = await deleteAll(atFirstDrive, why);
    expect(result).toMatchObject({ kind: 'retryAfter', reason: 'frozen', message: why });
    expect(volumes.orders).toBe(0);
  });

  test.each([undefined, why])(
    'waits between two deletions until its lease is back (brake: %s)',
    async (of) => {
      let asked = 0;
      const isAway = (call: RecordedCall) => atFirstDeletion(call) && asked++ < 2;
      const { result, volumes } = await deleteAll(isAway, of);
      expect(asked).toBeGreaterThan(2);
      expect(result).toMatchObject({ kind: 'complete' });
      expect(volumes).toEqual({ orders: 2, layout: [] });
    },
  );
});
