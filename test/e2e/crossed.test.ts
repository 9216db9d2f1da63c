/** BMCs that answer at each other's address: nobody may wipe the wrong machine (DESIGN §5). */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  FailureType,
  type Host,
  HostGoal,
  HostState,
  RunKind,
  RunPhase,
} from '@rackwright/messages';
import { holdsPattern, readDescription, writeDescription } from '@rackwright/sim/machine';
import { describe, expect, test } from 'vitest';
import {
  crossBmcs,
  diskChanges,
  type MachineFolder,
  type MachinePlan,
  runnerStarts,
  takeWitnessesAway,
} from './machines.ts';
import { shortPauses } from './pauses.ts';
import { Rack } from './rack.ts';

const timeout = 600_000;

function machine(number: number): MachinePlan {
  return {
    name: `h${number}`,
    bmcAddress: `127.0.0.2${number}`,
    mac: `52:54:00:00:00:0${number}`,
    uuid: `0${number}02030405060708090a0b0c0d0e0f10`,
    serial: `SN-${number}`,
    disks: [
      { name: 'vda', serial: `DISK-${number}`, kind: 'discard' },
      { name: 'nvme0', serial: `NVME-${number}`, kind: 'format' },
    ],
  };
}

type Pair = readonly [MachineFolder, MachineFolder];

interface CrossedOptions {
  /** Unset: both BMCs answer at each other's address. */
  readonly cross?: (machines: Pair) => Pair;
  /** Unset means true. */
  readonly witnesses?: boolean;
  readonly allowUnproven?: boolean;
  /** How long a runner is waited for; unset: as by default. */
  readonly bootTimeoutMs?: number;
}

/** The BMCs are who they were, but each switches the other machine. */
function crossPowerWires(machines: Pair): Pair {
  const crossed = crossBmcs(...machines);
  for (const name of ['guid', 'serial']) {
    const [one, two] = crossed.map(({ folder }) => readFileSync(join(folder, name), 'utf8'));
    writeFileSync(join(crossed[0].folder, name), two ?? '');
    writeFileSync(join(crossed[1].folder, name), one ?? '');
  }
  return crossed;
}

/** The network cards were exchanged: each machine netboots with the other's MAC. */
function exchangeCards([a, b]: Pair): Pair {
  const [one, two] = [readDescription(a.folder), readDescription(b.folder)];
  writeDescription(a.folder, { ...one, mac: two.mac });
  writeDescription(b.folder, { ...two, mac: one.mac });
  return [a, b];
}

/** Two hosts that were verified, and crossed then. */
async function startCrossed(options: CrossedOptions): Promise<Rack> {
  const { cross = (machines) => crossBmcs(...machines) } = options;
  const { witnesses = true, allowUnproven = false, bootTimeoutMs } = options;
  const rack = await Rack.start({
    machines: [machine(1), machine(2)],
    goal: HostGoal.MANAGEABLE,
    agent: { netboots: { missingAfterMs: 1_500 } },
    ...(bootTimeoutMs === undefined
      ? {}
      : { controlplane: { engine: { ...shortPauses, goalFailuresMax: 2, bootTimeoutMs } } }),
    prepareMachine: witnesses ? () => undefined : takeWitnessesAway,
    ...(allowUnproven ? { cleaning: { allowUnprovenIdentity: true } } : {}),
  });
  try {
    for (const name of ['h1', 'h2']) {
      await rack.untilHost(name, 'verified', ({ status }) => {
        return status?.state === HostState.MANAGEABLE && status.run?.phase === RunPhase.ENDED;
      });
    }
    const [a, b] = rack.machines;
    if (a === undefined || b === undefined) throw new Error('two machines are needed');
    rack.machines.splice(0, 2, ...cross([a, b]));
    return rack;
  } catch (error) {
    await rack.stop();
    throw error;
  }
}

/** Asks for cleans, all at once, and answers each host at its end. */
async function cleanAll(rack: Rack, names: readonly string[]): Promise<Host[]> {
  const before = await Promise.all(
    names.map((name) => rack.clients.hosts.getHost({ name: `hosts/${name}` })),
  );
  await Promise.all(names.map((name) => rack.clients.hosts.cleanHost({ name: `hosts/${name}` })));
  return Promise.all(
    names.map((name, index) => {
      const number = before[index]?.status?.run?.number ?? 0n;
      return rack.untilHost(name, 'at the end of its clean', ({ status }) => {
        const run = status?.run;
        return run?.kind === RunKind.CLEAN && run.number > number && run.phase === RunPhase.ENDED;
      });
    }),
  );
}

function expectMismatch(host: Host | undefined, other: string): void {
  const failure = host?.status?.run?.error;
  expect(failure?.type).toBe(FailureType.IDENTITY_MISMATCH);
  expect(failure?.message).toContain(`hosts/${other}`);
  expect(host?.status?.state).toBe(HostState.MANAGEABLE);
  expect(host?.status?.dirty).toBe(true);
}

/** Nobody proves that they are crossed: the clean ends without its runner, and says who came. */
function expectSuspicion(host: Host | undefined, other: string): void {
  const failure = host?.status?.run?.error;
  expect(failure?.type).not.toBe(FailureType.IDENTITY_MISMATCH);
  expect(failure?.message).toMatch(new RegExp(`hosts/${other} .* may be crossed`));
  expect(host?.status).toMatchObject({ state: HostState.MANAGEABLE, dirty: true });
}

/** Longer than a software machine takes to boot, on a busy computer too. */
const bootTimeoutMs = 30_000;
/** Where no machine boots that could be waited for. */
const vainBootTimeoutMs = 10_000;

function expectDisksIntact(rack: Rack): void {
  for (const folder of rack.machines) {
    for (const disk of folder.plan.disks) {
      expect(diskChanges(folder, disk), `${folder.plan.name} ${disk.name}`).toEqual([]);
      expect(holdsPattern(folder.folder, disk)).toBe(true);
    }
  }
}

async function onCrossed(options: CrossedOptions, body: (rack: Rack) => Promise<void>) {
  const rack = await startCrossed(options);
  try {
    await body(rack);
    expectDisksIntact(rack);
  } finally {
    await rack.stop();
  }
}

describe('two hosts whose BMCs are crossed', () => {
  test('each end their clean naming the other, alone and both at once', { timeout }, () =>
    onCrossed({}, async (rack) => {
      const [alone] = await cleanAll(rack, ['h1']);
      expectMismatch(alone, 'h2');
      const [h1, h2] = await cleanAll(rack, ['h1', 'h2']);
      expectMismatch(h1, 'h2');
      expectMismatch(h2, 'h1');
    }),
  );

  test('write nothing while the BMCs say nothing, and name who netbooted', { timeout }, () =>
    onCrossed(
      { witnesses: false, allowUnproven: true, bootTimeoutMs: vainBootTimeoutMs },
      async (rack) => {
        const [alone] = await cleanAll(rack, ['h1']);
        expectSuspicion(alone, 'h2');
        expect(rack.machines.map((folder) => runnerStarts(folder))).toEqual([0, 0]);
      },
    ),
  );

  test('name who netbooted when the power wires alone are crossed', { timeout }, () =>
    onCrossed({ cross: crossPowerWires, bootTimeoutMs: vainBootTimeoutMs }, async (rack) => {
      const [alone] = await cleanAll(rack, ['h2']);
      expectSuspicion(alone, 'h1');
    }),
  );

  test('are told apart in band when each netboots with the other’s MAC', { timeout }, () =>
    onCrossed({ cross: exchangeCards, bootTimeoutMs }, async (rack) => {
      // Alone, it only seems that the other one has booted: nobody proves more.
      const [alone] = await cleanAll(rack, ['h1']);
      expectSuspicion(alone, 'h2');
      const [h1, h2] = await cleanAll(rack, ['h1', 'h2']);
      expectMismatch(h1, 'h2');
      expectMismatch(h2, 'h1');
    }),
  );

  test('stay unproven when both boot at once and no BMC says who it is', { timeout }, () =>
    onCrossed({ witnesses: false }, async (rack) => {
      for (const host of await cleanAll(rack, ['h1', 'h2'])) {
        const { IDENTITY_MISMATCH, IDENTITY_UNPROVEN } = FailureType;
        expect([IDENTITY_MISMATCH, IDENTITY_UNPROVEN]).toContain(host.status?.run?.error?.type);
        expect(host.status?.state).toBe(HostState.MANAGEABLE);
        expect(host.status?.dirty).toBe(true);
      }
    }),
  );
});
