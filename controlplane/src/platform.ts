/** The control plane's interface to its machine. */
import type {
  Clock,
  CrashPoint,
  Disk,
  Exec,
  Http,
  LargeFiles,
  LocalCalls,
  Log,
  ProcessFigures,
  Random,
  WebClient,
} from '@rackwright/platform';
import type { StateStore } from '@rackwright/store';
import type { Software } from './version.ts';

/** The outside world, as the control plane needs it. */
export interface Platform {
  readonly clock: Clock;
  /**
   * Milliseconds, for metrics of durations: cheaper to read than the clock, and without suspended
   * time. Absent: the clock is read.
   */
  readonly elapsedMs?: () => number;
  readonly random: Random;
  readonly disk: Disk;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** Absent: the webhooks of templates are not called, and their steps fail. */
  readonly webClient?: WebClient;
  /** Reaches the identity provider; absent: there is none. */
  readonly oidcWebClient?: WebClient;
  /** Absent: no program is run for the secrets key. */
  readonly exec?: Exec;
  /** Absent: no backup can be made while this runs. */
  readonly largeFiles?: LargeFiles;
  readonly localCalls?: LocalCalls;
  /** The web console's files, by paths such as "index.html"; absent: it is not installed. */
  readonly consoleFiles?: ReadonlyMap<string, Uint8Array>;
  /** Reaches the collector of spans, at any address; absent: no spans are recorded. */
  readonly tracesWebClient?: WebClient;
  /** Absent: metrics cannot be scraped. */
  readonly metricsHttp?: Http;
  /** Absent: there are no process metrics. */
  readonly processFigures?: () => ProcessFigures;
  /** $CREDENTIALS_DIRECTORY, where systemd puts a unit's credentials. */
  readonly credentialsFolder?: string;
  /** Unset: certificates name only the version. */
  readonly software?: Software;
  /** Opens the configured store. */
  readonly openStore: () => Promise<StateStore>;
}
