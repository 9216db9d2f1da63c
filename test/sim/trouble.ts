/**
 * What goes wrong in a simulated rack, each kind with a name, at times that the seed chooses. Every
 * world has a temper of its own: only some kinds happen in it, so that rare ones are not always
 * drowned by frequent ones.
 */

import type { Direction } from '@rackwright/sim';
import type { ControlPlaneReplica } from './control-plane.ts';
import { soundDrive, type WipeFault } from './drives.ts';
import type { SimMachine } from './machine.ts';
import type { AgentBox } from './rack-agent.ts';
import type { StoreReach } from './slow-store.ts';
import type { WorldView } from './view.ts';

/** The parts of the rack that can be harmed. */
export interface Victims {
  readonly box: AgentBox;
  readonly replicas: readonly ControlPlaneReplica[];
  readonly reaches: readonly StoreReach[];
  readonly machines: readonly SimMachine[];
  /** Swaps the cables of two BMCs; the same call swaps them back. */
  crossBmcs(a: SimMachine, b: SimMachine): void;
  /** A second box with a copy of the agent's disk is switched on for a while. */
  cloneAgent(durationMs: number): void;
  /** A copy of the agent's disk as it was some time ago. */
  olderAgentDisk(): ReadonlyMap<string, Uint8Array> | undefined;
  /** What the agent has seen of the store may be gone. */
  agentForgot(): void;
  /** An older state of the store is put back; `saysSo`: the control plane is told. */
  restoreStore(saysSo: boolean): void;
}

type Trouble = (view: WorldView, victims: Victims) => void;

const session: Record<string, Trouble> = {
  'stream cut': (_view, { box }) => box.link?.cut(),
  'stream half open': ({ chance, random }, { box }) =>
    box.link?.halfOpen(random.fraction() < 0.5 ? 'near' : 'far', chance.around(40_000)),
  'one-way partition': ({ chance }, { box }) =>
    box.partition([chance.pick<Direction>(['toFar', 'toNear'])], chance.around(30_000)),
  partition: ({ chance }, { box }) => box.partition(['toFar', 'toNear'], chance.around(40_000)),
};

const crashes: Record<string, Trouble> = {
  'agent killed': (_view, { box }) => box.kill(),
  'control plane killed': ({ chance }, { replicas }) => chance.pick(replicas).kill(),
  'everything killed': (_view, { box, replicas, machines }) => {
    box.kill();
    for (const replica of replicas) replica.kill();
    for (const machine of machines) runnerOf(machine)?.kill();
  },
  'agent suspended': ({ chance }, { box }) => box.suspend(chance.around(40_000)),
  'control plane suspended': ({ chance }, { replicas }) =>
    chance.pick(replicas).suspend(chance.around(30_000)),
  'store away': ({ chance, heap }, { reaches }) => {
    chance.pick(reaches).awayUntilMs = heap.nowMs + chance.around(30_000);
  },
};

const stores: Record<string, Trouble> = {
  'store restored': (_view, { restoreStore }) => restoreStore(true),
  'store rolled back': (_view, { restoreStore }) => restoreStore(false),
};

const agentBoxes: Record<string, Trouble> = {
  'agent clock stepped': ({ chance }, { box }) => {
    const stepMs = chance.pick([-86_400_000, -600_000, -90_000, 30_000, 300_000, 7_200_000]);
    box.clockOffsetMs = box.clockOffsetMs === 0 ? stepMs : 0;
  },
  'agent disk slow': ({ chance, heap }, { box }) => {
    box.diskSlowMs = 1_500;
    heap.after(chance.around(40_000), () => {
      box.diskSlowMs = 0;
    });
  },
  'agent disk full': ({ chance, heap }, { box, agentForgot }) => {
    // What it sees meanwhile it forgets with its next crash.
    agentForgot();
    box.diskFullUntilMs = heap.nowMs + chance.around(30_000);
  },
  'journal lost': (_view, { box, agentForgot }) => {
    agentForgot();
    box.kill();
    box.platters.files.delete('/agent/journal');
  },
  'agent disk rolled back': (_view, { box, olderAgentDisk, agentForgot }) => {
    const older = olderAgentDisk();
    if (older === undefined) return;
    agentForgot();
    box.kill();
    box.platters.restore(older);
  },
  'agent cloned': ({ chance }, { cloneAgent, agentForgot }) => {
    // Each of the two has seen what the other has not.
    agentForgot();
    cloneAgent(chance.around(60_000));
  },
};

const bmcs: Record<string, Trouble> = {
  'BMC silent': onBmc((bmc, untilMs) => {
    bmc.silentUntilMs = untilMs;
  }),
  'BMC busy': onBmc((bmc, untilMs) => {
    bmc.busyUntilMs = untilMs;
  }),
  'BMC lies': onBmc((bmc, untilMs) => {
    bmc.lyingUntilMs = untilMs;
  }),
  'BMC locked': onBmc((bmc, untilMs) => {
    bmc.lockedUntilMs = untilMs;
  }),
  'BMC slow': onBmc((bmc) => {
    bmc.slowMs = bmc.slowMs === 0 ? 3_000 : 0;
  }),
  'BMC reset': ({ chance }, { machines }) => {
    const machine = chance.pick(machines);
    machine.bmc.reset(machine, chance.around(20_000));
  },
  'BMCs crossed': ({ chance, heap, faulty }, { machines, crossBmcs }) => {
    const [a, b] = machines;
    if (a === undefined || b === undefined) return;
    crossBmcs(a, b);
    heap.after(chance.around(90_000), () => faulty() && crossBmcs(a, b));
  },
};

const hosts: Record<string, Trouble> = {
  'runner killed': ({ chance }, { machines }) => runnerOf(chance.pick(machines))?.kill(),
  'runner cut off': ({ chance }, { machines }) => runnerOf(chance.pick(machines))?.cut(),
  'kernel panic': ({ chance }, { machines }) => chance.pick(machines).panic(),
  'power button': ({ chance }, { machines }) => chance.pick(machines).pressButton(),
  'disk fails': ({ chance, heap }, { machines }) => {
    const drive = chance.pick(chance.pick(machines).drives);
    drive.traits.failsUntilMs = heap.nowMs + chance.around(40_000);
  },
  'disk lies': ({ chance, heap }, { machines }) => {
    const { traits } = chance.pick(chance.pick(machines).drives);
    if (traits.lies) return;
    traits.lies = true;
    heap.after(chance.around(60_000), () => {
      traits.lies = false;
    });
  },
  'disk loses its wipe': onWipe('lostAtPowerOff'),
  'disk shows its wipe late': onWipe('showsLate'),
  'disk replaced': ({ chance, random }, { machines }) => {
    const machine = chance.pick(machines);
    // People open a machine only when it is off.
    if (machine.isOn()) return;
    const at = random.below(machine.drives.length);
    const before = machine.drives[at];
    if (before === undefined) return;
    const serial = `${before.serial}x`;
    machine.replaceDrive(at, soundDrive(serial, before.traits.kind), true);
  },
};

const kinds: Readonly<Record<string, Trouble>> = {
  ...session,
  ...crashes,
  ...stores,
  ...agentBoxes,
  ...bmcs,
  ...hosts,
};

/** Names of everything that can go wrong. */
export const troubleNames: readonly string[] = Object.keys(kinds);

/**
 * What a rack needs long to come back from. Where pools are to roll out, two worlds of three are
 * without: else few hosts are in service for long enough to be taken out.
 */
const heavy: ReadonlySet<string> = new Set([
  ...Object.keys(stores),
  ...['agent disk full', 'journal lost', 'agent disk rolled back', 'agent cloned'],
  ...['agent clock stepped', 'BMC locked', 'BMCs crossed', 'disk replaced', 'power button'],
]);

/** Lets things go wrong, about every `everyMs`, until the faults stop. */
export function scheduleTrouble(view: WorldView, victims: Victims, everyMs: number): void {
  const drawn = troubleNames.filter(() => view.random.fraction() < 0.35);
  const temper = view.isMild ? drawn.filter((name) => !heavy.has(name)) : drawn;
  if (temper.length === 0) return;
  const next = () => {
    view.heap.after(view.chance.around(everyMs), () => {
      if (!view.faulty()) return;
      const name = view.chance.pick(temper);
      view.trace(`trouble: ${name}`);
      view.count(name);
      kinds[name]?.(view, victims);
      next();
    });
  };
  next();
}

function onBmc(harm: (bmc: SimMachine['bmc'], untilMs: number) => void): Trouble {
  return ({ chance, heap }, { machines }) =>
    harm(chance.pick(machines).bmc, heap.nowMs + chance.around(40_000));
}

/** For long enough that a clean begins and ends meanwhile; then the cache is written at last. */
function onWipe(fault: WipeFault): Trouble {
  return ({ chance, heap }, { machines }) => {
    const drive = chance.pick(chance.pick(machines).drives);
    if (drive.traits.wipe !== 'none') return;
    drive.traits.wipe = fault;
    heap.after(chance.around(240_000), () => drive.mend());
  };
}

function runnerOf(machine: SimMachine) {
  return machine.booted.kind === 'runner' ? machine.booted.runner : undefined;
}
