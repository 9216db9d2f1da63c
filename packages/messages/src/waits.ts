/**
 * The closed list of what runs wait for: the values of `Waiting.reason`. A new wait does not
 * compile before the tables that explain waits have a cell for it.
 */

import type { Waiting } from './gen/rackwright/v1/run_pb.ts';

/** What a host's run waits for. */
export const hostWaits = [
  'agent',
  'runner',
  'bmc',
  'person',
  'registry',
  'image',
  'conflict',
  'retry',
  'webhook',
  'hold',
  'wait',
  'freeze',
  'wipeBudget',
  'capacity',
  'restored',
] as const;

export type HostWait = (typeof hostWaits)[number];

/** What a workflow's run waits for before a host runs it. */
export const pendingWaits = ['template', 'disabled', 'run', 'host'] as const;

export type PendingWait = (typeof pendingWaits)[number];

const hostWords: ReadonlyMap<string, HostWait> = new Map(hostWaits.map((word) => [word, word]));
const pendingWords: ReadonlyMap<string, PendingWait> = new Map(
  pendingWaits.map((word) => [word, word]),
);

type Waits = Pick<Waiting, 'reason'> | undefined;

/** What a host's run waits for; undefined: for nothing, or for what only other versions know. */
export function hostWaitOf(waiting: Waits): HostWait | undefined {
  return hostWords.get(waiting?.reason ?? '');
}

/** What the run waits for before a host runs it; undefined as above. */
export function pendingWaitOf(waiting: Waits): PendingWait | undefined {
  return pendingWords.get(waiting?.reason ?? '');
}
