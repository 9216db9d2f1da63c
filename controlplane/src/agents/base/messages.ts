/** Small messages about hosts, made from their records and from what agents said. */
import { create } from '@bufbuild/protobuf';
import { agent, type store as wire } from '@rackwright/messages';
import { bootProfileOf, netbootOf } from '../../host/index.ts';
import type { ImageSources } from '../../images/index.ts';

/** How images of hosts are requested, by the fleet's record. */
export interface FleetRegistryAccess {
  readonly sources: ImageSources;
  /** The versions of the existing credentials. */
  readonly versions: ReadonlyMap<string, bigint>;
  /** The revision of the fleet's record; 0: there is none. */
  readonly fleetRevision: number;
}

export const noAccess: FleetRegistryAccess = Object.freeze({
  sources: undefined,
  versions: new Map<string, bigint>(),
  fleetRevision: 0,
});

/** What the boot path knows of a host. */
export function bootHost(record: wire.HostRecord, access: FleetRegistryAccess): agent.BootHost {
  const { host } = record;
  const netboot = netbootOf(record, access.sources, access.versions);
  return create(agent.BootHostSchema, {
    hostUid: host?.uid ?? '',
    hostName: host?.name ?? '',
    macs: host?.spec?.bootMacs ?? [],
    bootProfile: bootProfileOf(host),
    ...(netboot === undefined ? {} : { netboot }),
  });
}

/** The presence of a runner, in the form of an agent's report. */
export function runnerFact(ready: agent.RunnerReady): agent.Report {
  const observations = create(agent.ObservationsSchema, { runnerReady: ready });
  return create(agent.ReportSchema, {
    hostUid: ready.hostUid,
    result: { case: 'hostUpdated', value: create(agent.HostUpdatedSchema, { observations }) },
  });
}
