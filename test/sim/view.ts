/** What the parts of a simulated rack see of the world that they are in. */
import type { AgentCore } from '@rackwright/agent';
import type { createWorkflowParts, Discovery, Hosts, Pools } from '@rackwright/controlplane';
import type { Log } from '@rackwright/platform';
import type { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import type { MemoryDisk, StateStore } from '@rackwright/store';
import type { Chance } from './chance.ts';
import type { SimMachine } from './machine.ts';
import type { PlantedFault } from './planted.ts';
import type { GateBook } from './pools/gate-hook.ts';
import type { TagBook } from './pools/registry.ts';
import type { TemplateBook } from './workflows/recipes.ts';

export interface WorldView {
  readonly heap: EventHeap;
  readonly seed: number;
  readonly random: ReturnType<typeof seededRandom>;
  readonly chance: Chance;
  readonly planted: PlantedFault | undefined;
  /** Whether people write templates and run workflows. */
  readonly workflows: boolean;
  /** Whether they run them on many hosts at once as well. */
  readonly batches: boolean;
  /** Whether there are pools of hosts. */
  readonly pools: boolean;
  /** Whether the hosts of pools boot their image over the network. */
  readonly netboot: boolean;
  /** Whether only that goes wrong which a rack soon comes back from. */
  readonly isMild: boolean;
  /** What the tags of images of hosts mean. */
  readonly tags: TagBook;
  /** What the receiver of their gates has been asked and has said. */
  readonly gates: GateBook;
  /** What clocks show when the world begins. */
  readonly wallStartMs: number;
  /** What they have written. */
  readonly book: TemplateBook;
  /** Whether there are machines that nobody knows. */
  readonly discovery: boolean;
  /** Those of them that are what they say. */
  readonly strangers: () => readonly SimMachine[];
  /** An agent lets a machine boot that is no host. */
  readonly discoveryBoot: (agent: LiveAgent, mac: string, operationId: string) => void;
  /** By name: "m1", "m2", … */
  readonly machines: ReadonlyMap<string, SimMachine>;
  /** What the store has kept, without delays and faults: for judges only. */
  readonly storeDisk: () => MemoryDisk;
  /** Control planes that are up. */
  readonly replicas: () => readonly Replica[];
  /** Agents that are up. */
  readonly agents: () => readonly LiveAgent[];
  /** Until when faults are still injected. */
  readonly faulty: () => boolean;
  /** One line of the trace. */
  readonly trace: (text: string) => void;
  /** Counts a fault or an act for the figures. */
  readonly count: (what: string) => void;
  /** A log that writes into the trace. */
  readonly log: (name: string) => Log;
  /** Reports that a promise is broken. */
  readonly found: (rule: string, text: string) => void;
  /** A process that the world may crash at its crash points. */
  readonly makeProcess: (name: string, wallNowMs?: () => number) => SimProcess;
}

/** One living control plane. */
export interface Replica {
  readonly name: string;
  readonly process: SimProcess;
  readonly hosts: Hosts;
  /** Undefined where there are none. */
  readonly parts: ReturnType<typeof createWorkflowParts> | undefined;
  readonly discovery: Discovery | undefined;
  readonly pools: Pools | undefined;
  /** As this replica reaches it: slow, and it may fail. */
  readonly store: StateStore;
}

/** One living agent. */
export interface LiveAgent {
  /** The box that it runs on. */
  readonly box: string;
  readonly process: SimProcess;
  readonly core: AgentCore;
}
