/** Disks that cannot be erased, or say that they were: the host never becomes available. */
import { type Host, HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/api';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { describe, expect, test } from 'vitest';
import { diskChanges, type MachinePlan } from './machines.ts';
import { Rack, type RackOptions } from './rack.ts';

const timeout = 600_000;
const good: DiskPlan = { name: 'vdg', serial: 'GOOD-1', kind: 'discard' };

function machineWith(disks: readonly DiskPlan[]): MachinePlan {
  return {
    name: 'h1',
    bmcAddress: '127.0.0.21',
    mac: '52:54:00:00:00:01',
    uuid: '0102030405060708090a0b0c0d0e0f10',
    serial: 'SN-1',
    disks,
  };
}

interface Cleaned {
  readonly rack: Rack;
  readonly host: Host;
}

/** The host at the end of its last clean, whichever way it ended. */
async function cleanWith(
  disks: readonly DiskPlan[],
  judge: (cleaned: Cleaned) => Promise<void> | void,
  cleaning: NonNullable<RackOptions['cleaning']> = {},
): Promise<void> {
  const rack = await Rack.start({ machines: [machineWith(disks)], cleaning });
  try {
    const host = await rack.untilHost('h1', 'done with cleaning', ({ status }) => {
      const run = status?.run;
      const over = run?.kind === RunKind.CLEAN && run.phase === RunPhase.ENDED;
      const tried = status?.backoff === undefined || status.backoff.givenUpReason !== '';
      return over && tried;
    });
    await judge({ rack, host });
  } finally {
    await rack.stop();
  }
}

async function expectFailure({ rack, host }: Cleaned, type: string, words: readonly string[]) {
  const { status } = host;
  const message = status?.run?.error?.message ?? '';
  expect(status?.run?.error?.type, message).toBe(type);
  for (const word of words) expect(message).toContain(word);
  expect(status?.state).toBe(HostState.MANAGEABLE);
  expect(status?.dirty).toBe(true);
  const pageSize = 1_000;
  const timeline = await rack.clients.hosts.listHostRevisions({ name: 'hosts/h1', pageSize });
  const states = new Set(timeline.revisions.map((each) => each.host?.status?.state));
  expect(states.has(HostState.AVAILABLE), 'it never was available').toBe(false);
  const { erasureCertificates } = await rack.clients.erasures.listErasureCertificates({});
  expect(erasureCertificates).toEqual([]);
}

interface BadDisk {
  readonly what: string;
  readonly disk: DiskPlan;
  readonly type: string;
}

const at = { offset: 1_048_576, length: 4_096 };
const badDisks: readonly BadDisk[] = [
  {
    what: 'cannot be written in one place',
    disk: {
      name: 'vdb',
      serial: 'BAD-WRITE',
      kind: 'overwrite',
      faults: [{ kind: 'ioError', operation: 'write', ...at }],
    },
    type: 'ioError',
  },
  {
    what: 'refuses to discard',
    disk: {
      name: 'vdb',
      serial: 'BAD-DISCARD',
      kind: 'discard',
      faults: [{ kind: 'ioError', operation: 'discard' }],
    },
    type: 'ioError',
  },
  {
    what: 'cannot be read back',
    disk: {
      name: 'vdb',
      serial: 'BAD-READ',
      kind: 'discard',
      faults: [{ kind: 'ioError', operation: 'read' }],
    },
    type: 'ioError',
  },
  {
    what: 'says that it discarded and did not',
    disk: {
      name: 'vdb',
      serial: 'LIES-DISCARD',
      kind: 'discard',
      faults: [{ kind: 'lying', operation: 'discard' }],
    },
    type: 'notErased',
  },
  {
    what: 'says that it formatted and did not',
    disk: {
      name: 'nvme0',
      serial: 'LIES-FORMAT',
      kind: 'format',
      faults: [{ kind: 'lying', operation: 'format' }],
    },
    type: 'notErased',
  },
  {
    what: 'says that it wrote and did not',
    disk: {
      name: 'vdb',
      serial: 'LIES-WRITE',
      kind: 'overwrite',
      faults: [{ kind: 'lying', operation: 'write' }],
    },
    type: 'ioError',
  },
];

describe('a disk that', () => {
  test.for(badDisks)('$what fails the clean and is named', { timeout }, ({ disk, type }) =>
    cleanWith([good, disk], async (cleaned) => {
      await expectFailure(cleaned, type, [disk.serial]);
      const [folder] = cleaned.rack.machines;
      expect(folder !== undefined && holdsPattern(folder.folder, good)).toBe(false);
    }),
  );

  test('is write-protected fails the clean before anything is written', { timeout }, () => {
    const disk: DiskPlan = { name: 'vdb', serial: 'READ-ONLY', kind: 'discard', readOnly: true };
    return cleanWith([good, disk], async (cleaned) => {
      await expectFailure(cleaned, 'deviceRefused', ['READ-ONLY']);
      const [folder] = cleaned.rack.machines;
      if (folder === undefined) throw new Error('no machine');
      for (const each of [good, disk]) {
        expect(diskChanges(folder, each)).toEqual([]);
        expect(holdsPattern(folder.folder, each)).toBe(true);
      }
    });
  });

  test('is the one bad among ten is the only one named', { timeout }, () => {
    const numbers = Array.from({ length: 9 }, (_, index) => index);
    const nine = numbers.map(
      (number): DiskPlan => ({ name: `vd${number}`, serial: `FINE-${number}`, kind: 'discard' }),
    );
    const faults = [{ kind: 'lying', operation: 'discard' }];
    const bad: DiskPlan = { name: 'vd5b', serial: 'BAD-10', kind: 'discard', faults };
    return cleanWith([...nine, bad], async (cleaned) => {
      await expectFailure(cleaned, 'notErased', ['BAD-10']);
      expect(cleaned.host.status?.run?.error?.message).not.toContain('FINE');
    });
  });
});

describe('a host without any disk', () => {
  test('is not taken for clean', { timeout }, () =>
    cleanWith([], (cleaned) => expectFailure(cleaned, 'noDevices', ['allow_diskless'])),
  );

  test('becomes available where the policy says so', { timeout }, () =>
    cleanWith(
      [],
      ({ host }) => {
        expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
        expect(host.status?.state).toBe(HostState.AVAILABLE);
      },
      { allowDiskless: true },
    ),
  );
});
