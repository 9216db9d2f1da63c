/** What sessions need of the control plane around them. */
import type { Clock, CrashPoint, Log, Random } from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { AuditSink } from '../../audit/index.ts';
import type { Discovery } from '../../discovery/index.ts';
import type { FleetView } from '../../fleet-view/index.ts';
import type { Hosts, SessionRegistry } from '../../host/index.ts';
import type { AcknowledgementMeter } from './acknowledgement.ts';
import type { BmcReads } from './bmc-reads.ts';
import type { ConsoleViews } from './console-views.ts';
import type { PrefetchProgress } from './prefetch-progress.ts';
import type { StepLogs } from './step-logs.ts';
import type { SessionTiming } from './timing.ts';
import type { SessionTrust } from './trust.ts';

export interface SessionDependencies {
  /** Without it machines that nobody knows get nothing. */
  readonly discovery?: Pick<Discovery, 'policyFor' | 'report'>;
  readonly store: StateStore;
  /** Of the same store. */
  readonly fleetView: Pick<FleetView, 'caughtUp' | 'idsBy'>;
  readonly random: Random;
  readonly clock: Clock;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  readonly registry: SessionRegistry;
  readonly hosts: Hosts;
  readonly timing: SessionTiming;
  /** What agents shall believe, and whether they are who they were; without it nothing is said. */
  readonly trust?: SessionTrust;
  /** Takes what steps' programs write; without it that is left out. */
  readonly stepLogs?: StepLogs;
  /** Takes how far agents are with images that they fetch beforehand. */
  readonly prefetched?: PrefetchProgress;
  /** Takes what agents have read of BMCs. */
  readonly bmcReads?: Pick<BmcReads, 'took'>;
  /** Takes what consoles show. */
  readonly consoles?: Pick<ConsoleViews, 'took'>;
  /** Who gives secrets away tells it there. */
  readonly audit?: AuditSink;
  /** Unset: answers are not timed. */
  readonly onAcknowledged?: AcknowledgementMeter;
  /** As in `Platform`. */
  readonly elapsedMs?: () => number;
  /** As in `HostsDependencies`. */
  readonly replicaId: string;
}
