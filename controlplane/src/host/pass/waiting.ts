/**
 * The closed list of what runs wait for: the words of `Waiting.reason`. Whoever waits for something
 * new does not compile before it has its cell in the tables that explain it.
 */

/** What a run that a host carries waits for (`explain-waiting.ts`). */
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

/** What a workflow's run waits for before a host carries it (`workflow/explain.ts`). */
export const pendingWaits = ['template', 'disabled', 'run', 'host'] as const;

export type PendingWait = (typeof pendingWaits)[number];
