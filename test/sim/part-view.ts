/** What each part of a simulated rack sees of it, whatever else the rack holds. */

import type { AgentCore } from '@rackwright/agent';
import type { OperationId } from '@rackwright/messages';
import type { Log } from '@rackwright/platform';
import type { EventHeap, SimProcess, seededRandom } from '@rackwright/sim';
import type { Chance } from './chance.ts';
import type { PlantedFault } from './planted.ts';
import type { ImageProofs } from './pools/image-proofs.ts';

export interface PartView {
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
  /** What of images runners can read. */
  readonly imageProofs: ImageProofs;
  /** Whether only that goes wrong which a rack soon comes back from. */
  readonly isMild: boolean;
  /** What clocks show when the world begins. */
  readonly wallStartMs: number;
  /** An agent lets a machine boot that is no host. */
  readonly discoveryBoot: (agent: LiveAgent, mac: string, operationId: OperationId) => void;
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

/** One living agent. */
export interface LiveAgent {
  /** The box that it runs on. */
  readonly box: string;
  readonly process: SimProcess;
  readonly core: AgentCore;
}
