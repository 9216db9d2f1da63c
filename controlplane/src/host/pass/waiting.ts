/**
 * The closed list of what runs wait for: the values of `Waiting.reason`. A new wait does not
 * compile before the tables that explain waits have a cell for it.
 */

/** What a host's run waits for (`explain/waiting.ts` explains each). */
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

/** What a workflow's run waits for before a host runs it (`workflow/explain.ts`). */
export const pendingWaits = ['template', 'disabled', 'run', 'host'] as const;

export type PendingWait = (typeof pendingWaits)[number];
