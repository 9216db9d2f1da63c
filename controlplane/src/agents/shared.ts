/** What the sessions of one replica share: who has which turn, and what a rack has taken. */
import type { Clock } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import { BootLists } from './boot-lists.ts';
import { RackBuckets } from './bucket.ts';
import { type AgentLimits, defaultAgentLimits } from './limits.ts';
import { Turns } from './turns.ts';

/** What the sessions of all racks have in common. */
export interface SharedBySessions {
  readonly limits: AgentLimits;
  /** For what agents tell. */
  readonly turns: Turns;
  /** For Hellos, each of which is much work. */
  readonly hellos: Turns;
  readonly bootLists: BootLists;
  /** How many machines that nobody knows a rack may tell of. */
  readonly findings: RackBuckets;
  /** How often a rack may say which authorities it believes. */
  readonly trustWrites: RackBuckets;
}

/** Each is a write; an authority is made and goes once in months. */
const trustWritesPerSecond = 1;
const trustWritesBurst = 16;

export interface SharedDependencies {
  readonly store: StateStore;
  readonly clock: Clock;
  readonly limits?: AgentLimits;
}

/** For the sessions of one replica. */
export function sharedBySessions({
  store,
  clock,
  limits = defaultAgentLimits,
}: SharedDependencies): SharedBySessions {
  const reports = {
    atOnceMax: limits.reportsAtOnceMax,
    perRackMax: limits.reportsPerRackAtOnceMax,
    perRackSharedMax: limits.reportsPerRackSharedMax,
  };
  // A newer session of a rack need not wait for one whose welcome takes long.
  const hellos = { atOnceMax: limits.hellosAtOnceMax, perRackMax: 2, perRackSharedMax: 2 };
  return {
    limits,
    turns: new Turns(reports, clock),
    hellos: new Turns(hellos, clock),
    bootLists: new BootLists(store),
    findings: new RackBuckets(limits.discoveredPerMinute / 60, limits.discoveredBurst),
    trustWrites: new RackBuckets(trustWritesPerSecond, trustWritesBurst),
  };
}
