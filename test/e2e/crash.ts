/** Arms the place at which a process of a rack ends as by `kill -9`. */
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { ArmedCrash } from '@rackwright/platform/node';

export const victims = ['controlplane', 'agent', 'runner'] as const;

/** Which process ends. */
export type Victim = (typeof victims)[number];

export interface Crash {
  readonly name: string;
  /** 1 for the first time that the place is passed. */
  readonly occurrence: number;
  readonly victim: Victim;
}

/** Where a program of a rack looks for what is armed. */
export function armedFile(rackFolder: string, program: string): string {
  return join(rackFolder, `${program}.armed`);
}

/** Arms a place of the agent or the control plane; those of the runner are armed by its kernel. */
export function arm(rackFolder: string, crash: Crash | undefined, pidFile: string): void {
  if (crash === undefined) return;
  const program = programOf(crash);
  if (program === 'runner') return;
  const { name, occurrence, victim } = crash;
  const armed: ArmedCrash = { name, occurrence, ...(victim === program ? {} : { pidFile }) };
  const file = armedFile(rackFolder, program);
  // Whole at once: its process may just be looking.
  writeFileSync(`${file}.new`, JSON.stringify(armed));
  renameSync(`${file}.new`, file);
}

/** The kernel argument that arms a place of the runner; empty for any other. */
export function runnerWordOf(crash: Crash | undefined, pidFile: string): string {
  if (crash === undefined || programOf(crash) !== 'runner') return '';
  const target = crash.victim === 'runner' ? '' : `:${pidFile}`;
  return `rackwright.lab.crash=${crash.name}:${crash.occurrence}${target}`;
}

/** Whose place it is, by its name. */
function programOf({ name }: Crash): Victim {
  if (name.startsWith('cp.')) return 'controlplane';
  return name.startsWith('agent.') ? 'agent' : 'runner';
}
