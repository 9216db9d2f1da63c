/** What the sessions of one replica share: who has which turn, and what a rack has taken. */
import { Buckets, type Clock } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { Hosts } from '../../host/index.ts';
import { type AgentLimits, defaultAgentLimits } from '../base/limits.ts';
import { RackSlots } from '../base/turns.ts';
import { BootLists } from '../push/boot-lists.ts';

/** What the sessions of all racks have in common. */
export interface SharedBySessions {
  readonly limits: AgentLimits;
  /** For what agents tell. */
  readonly turns: RackSlots;
  /** For Hellos, each of which is much work. */
  readonly hellos: RackSlots;
  readonly bootLists: BootLists;
  /** How many machines that nobody knows a rack may tell of. */
  readonly findings: Buckets;
  /** How often a rack may say which authorities it believes. */
  readonly trustWrites: Buckets;
}

/** Each is a write; an authority is made and goes once in months. */
const trustWrites = { perSecond: 1, most: 16 };

/** Racks whose buckets are kept at once: more than one control plane has. */
const rackBucketsMax = 65_536;

export interface SharedSessionDependencies {
  readonly store: StateStore;
  readonly hosts: Pick<Hosts, 'hostIdsOfRack'>;
  readonly clock: Clock;
  readonly limits?: AgentLimits;
}

/** For the sessions of one replica. */
export function sharedBySessions({
  store,
  hosts,
  clock,
  limits = defaultAgentLimits,
}: SharedSessionDependencies): SharedBySessions {
  const reports = {
    atOnceMax: limits.reportsAtOnceMax,
    perRackMax: limits.reportsPerRackAtOnceMax,
    perRackSharedMax: limits.reportsPerRackSharedMax,
  };
  // A newer session of a rack need not wait for one whose welcome takes long.
  const hellos = { atOnceMax: limits.hellosAtOnceMax, perRackMax: 2, perRackSharedMax: 2 };
  const findings = { perSecond: limits.discoveredPerMinute / 60, most: limits.discoveredBurst };
  return {
    limits,
    turns: new RackSlots(reports, clock),
    hellos: new RackSlots(hellos, clock),
    bootLists: new BootLists(store, hosts),
    findings: new Buckets(findings, rackBucketsMax),
    trustWrites: new Buckets(trustWrites, rackBucketsMax),
  };
}
