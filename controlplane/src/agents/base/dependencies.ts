/** What sessions need from the rest of the control plane. */
import type { ReplicaId } from '@rackwright/messages';
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
  /** Without it unknown machines get nothing. */
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
  /**
   * Which authorities agents are to trust, and whether keys are still valid; without it agents get
   * no bundle.
   */
  readonly trust?: SessionTrust;
  /** Takes the output of steps' programs; without it the output is dropped. */
  readonly stepLogs?: StepLogs;
  /** Takes the progress of agents with images that they prefetch. */
  readonly prefetched?: PrefetchProgress;
  /** Takes agents' answers about BMCs. */
  readonly bmcReads?: Pick<BmcReads, 'receiveAnswer'>;
  /** Takes the output of consoles. */
  readonly consoles?: Pick<ConsoleViews, 'receiveOutput'>;
  /** Records each secret that is sent. */
  readonly audit?: AuditSink;
  /** Unset: answers are not timed. */
  readonly onAcknowledged?: AcknowledgementMeter;
  /** As in `Platform`. */
  readonly elapsedMs?: () => number;
  /** As in `HostsDependencies`. */
  readonly replicaId: ReplicaId;
}
