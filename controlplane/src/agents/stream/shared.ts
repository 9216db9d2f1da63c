/** What the sessions of one replica share: the slots, and the quotas of each rack. */
import { Buckets, type Clock } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { Hosts } from '../../host/index.ts';
import { type AgentLimits, defaultAgentLimits } from '../base/limits.ts';
import { RackSlots } from '../base/rack-slots.ts';
import { BootLists } from '../push/boot-lists.ts';

/** What the sessions of all racks share. */
export interface SharedBySessions {
  readonly limits: AgentLimits;
  /** For messages of agents. */
  readonly reportSlots: RackSlots;
  /** For Hellos, each of which is expensive. */
  readonly hellos: RackSlots;
  readonly bootLists: BootLists;
  /** How many unknown machines a rack may report. */
  readonly findings: Buckets;
  /** How often a rack may report the authorities that it trusts. */
  readonly trustWrites: Buckets;
}

/** Each report is a write; authorities change once in months. */
const trustWrites = { perSecond: 1, most: 16 };

/** The most racks with buckets: more than one control plane has. */
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
    reportSlots: new RackSlots(reports, clock),
    hellos: new RackSlots(hellos, clock),
    bootLists: new BootLists(store, hosts),
    findings: new Buckets(findings, rackBucketsMax),
    trustWrites: new Buckets(trustWrites, rackBucketsMax),
  };
}
