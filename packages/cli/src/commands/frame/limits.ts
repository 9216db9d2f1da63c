/** Flags of limits and brakes, as racks and the fleet have them. */
import { counted, type Freeze, type WipeBudget } from '@rackwright/messages';
import type { CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { requestFlag } from '../../flags.ts';
import { ago } from '../../output/time.ts';

/** Why, and the id under which it may be repeated. */
export const brakeFlags = {
  reason: { kind: 'parsed', parse: String, brief: 'Why, one line', placeholder: 'why' },
  ...requestFlag,
} as const;

export interface BrakeFlags {
  readonly reason: string;
  readonly requestId: string;
}

export const wipeBudgetFlag = {
  wipeBudget: {
    kind: 'parsed',
    parse: String,
    optional: true,
    brief: 'Hosts that may begin to be wiped: HOSTS/SECONDS, HOSTS (in an hour), or none',
    placeholder: 'hosts/seconds',
  },
} as const;

type Budget = Pick<WipeBudget, 'hosts' | 'seconds'>;

/** "8/3600", "8" or "none"; undefined means that no budget is set. */
export function parseBudget(text: string): Budget | undefined {
  if (text === 'none') return undefined;
  const found = /^(\d{1,6})(?:\/(\d{1,7}))?$/.exec(text);
  const [, hosts, seconds] = found ?? [];
  if (hosts === undefined) {
    throw new UsageError(`--wipe-budget is "${text}"; it must be HOSTS/SECONDS, HOSTS or none`);
  }
  return seconds === undefined
    ? { hosts: Number(hosts) }
    : { hosts: Number(hosts), seconds: Number(seconds) };
}

/** "3" or "none". */
export function parseRuns(text: string): number | undefined {
  if (text === 'none') return undefined;
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new UsageError(`--runs is "${text}"; it must be a whole number, or none`);
}

/** "8 hosts in 3600 s" */
export function budgetText(budget: Budget | undefined): string {
  return budget === undefined
    ? ''
    : `${counted(budget.hosts, 'host')} in ${budget.seconds ?? 3600} s`;
}

/** "frozen by user:ann: a drill"; '' while it is not frozen. */
export function freezeText(freeze: Freeze | undefined, subject = ''): string {
  return freeze === undefined ? '' : `${subject}frozen by ${freeze.by}: ${freeze.reason}`;
}

/** Who froze it, why and since when; nothing while it is not frozen. */
export function freezeFields({ clock }: CommandIo, freeze: Freeze | undefined): [string, string][] {
  if (freeze === undefined) return [];
  const { by, at, reason } = freeze;
  return [['frozen', `by ${by} (${ago(clock, at)}): ${reason}`]];
}
