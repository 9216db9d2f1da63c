/** What the parts of a simulated rack see of the world that they are in. */
import type {
  createWorkflowParts,
  Discovery,
  FleetView,
  Hosts,
  Pools,
} from '@rackwright/controlplane';
import type { SimProcess } from '@rackwright/sim';
import type { MemoryDisk, StateStore } from '@rackwright/store';
import type { SimMachine } from './machine.ts';
import type { PartView } from './part-view.ts';
import type { GateBook } from './pools/gate-hook.ts';
import type { TagBook } from './pools/registry.ts';
import type { TemplateBook } from './workflows/recipes.ts';

export interface WorldView extends PartView {
  /** What the tags of images of hosts mean. */
  readonly tags: TagBook;
  /** What the receiver of their gates has been asked and has said. */
  readonly gates: GateBook;
  /** What they have written. */
  readonly book: TemplateBook;
  /** Whether there are machines that nobody knows. */
  readonly discovery: boolean;
  /** Those of them that are what they say. */
  readonly strangers: () => readonly SimMachine[];
  /** By name: "m1", "m2", … */
  readonly machines: ReadonlyMap<string, SimMachine>;
  /** What the store has kept, without delays and faults: for judges only. */
  readonly storeDisk: () => MemoryDisk;
  /** Control planes that are up. */
  readonly replicas: () => readonly Replica[];
}

/** One living control plane. */
export interface Replica {
  readonly name: string;
  readonly process: SimProcess;
  readonly hosts: Hosts;
  readonly fleetView: FleetView;
  /** Undefined where there are none. */
  readonly parts: ReturnType<typeof createWorkflowParts> | undefined;
  readonly discovery: Discovery | undefined;
  readonly pools: Pools | undefined;
  /** As this replica reaches it: slow, and it may fail. */
  readonly store: StateStore;
}
