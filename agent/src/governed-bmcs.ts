/** The BMCs of a rack and the governors of their calls; what makes a driver is handed in. */
import {
  type BmcDriver,
  type BmcHealth,
  type GovernedCalls,
  Governor,
  Governors,
  type PreemptibleUse,
} from '@rackwright/bmc';
import type { Clock, Exec, HttpClient, Log, Names, Udp, WebClient } from '@rackwright/platform';
import type { AgentConfig } from './config.ts';
import { type BmcMeter, meteredCalls } from './metrics/index.ts';
import type { BmcDrivers, BmcEndpoint } from './operations/index.ts';
import { wakerBy } from './wake.ts';

/** The platform interfaces that the drivers use. */
export interface BmcPlatform {
  readonly clock: Clock;
  readonly exec: Exec;
  readonly names?: Names;
  readonly httpClient: HttpClient;
  /** Absent: no device is asked by plain HTTP, and none is woken. */
  readonly webClient?: WebClient;
  readonly udp?: Udp;
  readonly log: Log;
  /** Unset: calls are not counted. */
  readonly onBmcCall?: BmcMeter;
}

/** Makes the driver of one BMC, whose calls all go through `governor`. */
export type CreateBmcDriver = (
  config: AgentConfig['bmc'],
  platform: BmcPlatform,
  endpoint: BmcEndpoint,
  governor: GovernedCalls,
) => BmcDriver;

/**
 * The drivers of a rack's BMCs. All callers of one address share one governor. `wakeFrom`: our
 * addresses on the networks that magic packets are sent to.
 */
export function createBmcDrivers(
  config: AgentConfig['bmc'],
  platform: BmcPlatform,
  createDriver: CreateBmcDriver,
  wakeFrom: readonly string[] = [],
): BmcDrivers {
  const { clock, log, onBmcCall } = platform;
  const governors = new Governors(
    (at) => new Governor(clock, config.governor, (health) => logHealth(log, at, health)),
  );
  const wakes = platform.udp === undefined ? {} : { wake: wakerBy(platform.udp, clock, wakeFrom) };
  return {
    firmware: config.firmware,
    ...wakes,
    driver: (endpoint, preemptible) => {
      const governor = governors.at(`${endpoint.address}:${endpoint.port}`);
      const governed = preemptible === undefined ? governor : governedFor(governor, preemptible);
      const { protocol } = endpoint;
      const calls =
        onBmcCall === undefined ? governed : meteredCalls(governed, protocol, clock, onBmcCall);
      return createDriver(config, platform, endpoint, calls);
    },
    forget: (address, port) => governors.forget(`${address}:${port}`),
    forgetRefusals: () => governors.startOver(),
  };
}

function governedFor(governor: Governor, preemptible: PreemptibleUse): GovernedCalls {
  return {
    run: (credential, act, rest, signal) =>
      governor.run(credential, act, rest, signal, preemptible),
  };
}

function logHealth(log: Log, bmc: string, health: BmcHealth): void {
  switch (health.kind) {
    case 'answering':
      log.info({ bmc }, 'BMC answers');
      return;
    case 'silent':
    case 'lockGuard':
      log.warn({ bmc, reason: health.reason }, 'BMC is not asked');
      return;
  }
}
