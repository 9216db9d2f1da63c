/** What the control plane gets of the machine that it runs on. */
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

/** The world as the control plane needs it. */
export interface Platform {
  readonly clock: Clock;
  /**
   * Milliseconds, for figures of how long something took: cheaper to read than the clock, and
   * without suspended time. Absent: the clock is read.
   */
  readonly elapsedMs?: () => number;
  readonly random: Random;
  readonly disk: Disk;
  readonly log: Log;
  readonly crashPoint: CrashPoint;
  /** Absent: the webhooks of templates are not called, and their steps fail. */
  readonly webClient?: WebClient;
  /** Reaches the identity provider; absent: none is believed. */
  readonly oidcWebClient?: WebClient;
  /** Absent: no program is asked for the secrets key. */
  readonly exec?: Exec;
  /** Absent: no backup can be made while this runs. */
  readonly largeFiles?: LargeFiles;
  readonly localCalls?: LocalCalls;
  /** Of the web console, by their paths as "index.html"; absent: it is not installed. */
  readonly consoleFiles?: ReadonlyMap<string, Uint8Array>;
  /** Reaches the collector of spans, wherever it is; absent: none is recorded. */
  readonly tracesWebClient?: WebClient;
  /** Absent: nobody can scrape figures. */
  readonly metricsHttp?: Http;
  /** Absent: figures say nothing of the process. */
  readonly processFigures?: () => ProcessFigures;
  /** $CREDENTIALS_DIRECTORY, where systemd puts what a unit loads. */
  readonly credentialsFolder?: string;
  /** Unset: the version alone names what made a certificate. */
  readonly software?: Software;
  /** Opens the store that the configuration names. */
  readonly openStore: () => Promise<StateStore>;
}
