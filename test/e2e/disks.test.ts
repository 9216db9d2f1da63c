/** Disks that cannot be erased, or say that they were: the host never becomes available. */
import {
  type FailureName,
  failureTypeOf,
  type Host,
  HostState,
  isGivenUp,
  RunKind,
  RunOutcome,
  RunPhase,
} from '@rackwright/messages';
import { type DiskPlan, holdsPattern } from '@rackwright/sim/machine';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { diskChanges, type MachineFolder, type MachinePlan } from './machines.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;

function goodDisk(n: number): DiskPlan {
  return { name: 'vdg', serial: `GOOD-${n}`, kind: 'discard' };
}

function machineWith(n: number, disks: readonly DiskPlan[]): MachinePlan {
  return {
    name: `h${n}`,
    bmcAddress: `127.0.0.${20 + n}`,
    mac: `52:54:00:00:00:0${n}`,
    uuid: `0102030405060708090a0b0c0d0e0f0${n}`,
    serial: `SN-${n}`,
    disks,
  };
}

interface Cleaned {
  readonly rack: Rack;
  readonly folder: MachineFolder;
  readonly host: Host;
}

/** The host at the end of its last clean, whichever way it ended. */
async function cleanedIn(rack: Rack, { name }: MachinePlan): Promise<Cleaned> {
  const host = await rack.untilHost(name, 'done with cleaning', ({ status }) => {
    const run = status?.run;
    const over = run?.kind === RunKind.CLEAN && run.phase === RunPhase.ENDED;
    const tried = status?.backoff === undefined || isGivenUp(status.backoff);
    return over && tried;
  });
  const folder = rack.machines.find(({ plan }) => plan.name === name);
  if (folder === undefined) throw new Error('no machine');
  return { rack, folder, host };
}

async function expectFailure({ rack, host }: Cleaned, type: FailureName, texts: readonly string[]) {
  const { status } = host;
  const message = status?.run?.error?.message ?? '';
  expect(status?.run?.error?.type, message).toBe(failureTypeOf(type));
  for (const word of texts) expect(message).toContain(word);
  expect(status?.state).toBe(HostState.MANAGEABLE);
  expect(status?.dirty).toBe(true);
  const pageSize = 1_000;
  const timeline = await rack.clients.hosts.listHostRevisions({ name: host.name, pageSize });
  const states = new Set(timeline.revisions.map((each) => each.host?.status?.state));
  expect(states.has(HostState.AVAILABLE), 'it never was available').toBe(false);
  const { erasureCertificates } = await rack.clients.erasures.listErasureCertificates({});
  expect(erasureCertificates).toEqual([]);
}

interface BadDisk {
  readonly what: string;
  readonly disk: DiskPlan;
  readonly type: FailureName;
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

const refused: DiskPlan = { name: 'vdb', serial: 'READ-ONLY', kind: 'discard', readOnly: true };
const nine = Array.from({ length: 9 }, (_, number): DiskPlan => {
  return { name: `vd${number}`, serial: `FINE-${number}`, kind: 'discard' };
});
const faults = [{ kind: 'lying', operation: 'discard' }];
const oneOfTen: DiskPlan = { name: 'vd5b', serial: 'BAD-10', kind: 'discard', faults };

const badMachines = badDisks.map(({ disk }, at) => machineWith(at, [goodDisk(at), disk]));
const protectedMachine = machineWith(7, [goodDisk(7), refused]);
const bigMachine = machineWith(8, [...nine, oneOfTen]);
const disklessMachine = machineWith(9, []);

describe('in a rack where no host may become available', () => {
  let rack: Rack;
  beforeAll(async () => {
    const machines = [...badMachines, protectedMachine, bigMachine, disklessMachine];
    rack = await Rack.start({ machines });
  });
  afterAll(() => rack?.stop());

  const rows = badDisks.map((bad, at) => ({ ...bad, at }));
  test.for(rows)('a disk that $what fails the clean and is named', { timeout }, async (row) => {
    const cleaned = await cleanedIn(rack, machineWith(row.at, []));
    await expectFailure(cleaned, row.type, [row.disk.serial]);
    expect(holdsPattern(cleaned.folder.folder, goodDisk(row.at))).toBe(false);
  });

  test('a disk that is write-protected fails the clean before anything is written', {
    timeout,
  }, async () => {
    const cleaned = await cleanedIn(rack, protectedMachine);
    await expectFailure(cleaned, 'deviceRefused', ['READ-ONLY']);
    for (const each of protectedMachine.disks) {
      expect(diskChanges(cleaned.folder, each)).toEqual([]);
      expect(holdsPattern(cleaned.folder.folder, each)).toBe(true);
    }
  });

  test('the one bad disk among ten is the only one named', { timeout }, async () => {
    const cleaned = await cleanedIn(rack, bigMachine);
    await expectFailure(cleaned, 'notErased', ['BAD-10']);
    expect(cleaned.host.status?.run?.error?.message).not.toContain('FINE');
  });

  test('a host without any disk is not taken for clean', { timeout }, async () => {
    const cleaned = await cleanedIn(rack, disklessMachine);
    await expectFailure(cleaned, 'noDevices', ['allow_diskless']);
  });
});

test('a host without any disk becomes available where the policy says so', {
  timeout,
}, async () => {
  const rack = await Rack.start({
    machines: [disklessMachine],
    cleaning: { allowDiskless: true },
  });
  try {
    const { host } = await cleanedIn(rack, disklessMachine);
    expect(host.status?.run?.outcome).toBe(RunOutcome.SUCCEEDED);
    expect(host.status?.state).toBe(HostState.AVAILABLE);
  } finally {
    await rack.stop();
  }
});
