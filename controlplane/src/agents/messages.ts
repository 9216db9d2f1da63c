/** Small messages about hosts, made from their records and from what agents said. */
import { create } from '@bufbuild/protobuf';
import { agent, type store as wire } from '@rackwright/api';

/** What the boot path knows of a host. */
export function bootHost(record: wire.HostRecord): agent.BootHost {
  const { host } = record;
  return create(agent.BootHostSchema, {
    hostUid: host?.uid ?? '',
    hostName: host?.name ?? '',
    macs: host?.spec?.bootMacs ?? [],
  });
}

/** That a runner is there, as the agent would have reported it. */
export function runnerFact(ready: agent.RunnerReady): agent.Report {
  const observations = create(agent.ObservationsSchema, { runnerReady: ready });
  return create(agent.ReportSchema, {
    hostUid: ready.hostUid,
    result: { case: 'hostUpdated', value: create(agent.HostUpdatedSchema, { observations }) },
  });
}
