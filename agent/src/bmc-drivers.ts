import {
  type BmcDriver,
  type BmcHealth,
  type GovernedCalls,
  Governor,
  Governors,
  IpmiDriver,
  type PowerCalls,
  type ReadOnlyUse,
  RedfishDriver,
  WebhookDriver,
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

/** For an order that names no calls: its driver reports that it knows no state. */
const noCalls: PowerCalls = {
  ...{ onPath: '/', offPath: '/', statePath: '/', method: '', onBody: '', offBody: '' },
  ...{ stateField: 'none', onValues: [], offValues: [], secretHeader: '', plainHttp: false },
};

/**
 * The drivers of a rack's BMCs. All callers of one address share one governor. `wakeFrom`: our
 * addresses on the networks that magic packets are sent to.
 */
export function createBmcDrivers(
  config: AgentConfig['bmc'],
  platform: BmcPlatform,
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
    driver: (endpoint, readOnly) => {
      const governor = governors.at(`${endpoint.address}:${endpoint.port}`);
      const governed = readOnly === undefined ? governor : governedFor(governor, readOnly);
      const { protocol } = endpoint;
      const calls =
        onBmcCall === undefined ? governed : meteredCalls(governed, protocol, clock, onBmcCall);
      return createDriver(config, platform, endpoint, calls);
    },
    forget: (address, port) => governors.forget(`${address}:${port}`),
  };
}

function governedFor(governor: Governor, readOnly: ReadOnlyUse): GovernedCalls {
  return {
    run: (credential, act, rest, signal) => governor.run(credential, act, rest, signal, readOnly),
  };
}

function createDriver(
  config: AgentConfig['bmc'],
  { clock, exec, names, httpClient: client, webClient: web }: BmcPlatform,
  endpoint: BmcEndpoint,
  governor: GovernedCalls,
): BmcDriver {
  const { address, port, credential } = endpoint;
  const { username: user, password } = credential;
  const name = `${credential.name}@${credential.version}`;
  const target = { address, port, user, password, credential: name };
  const { readBack } = config;
  switch (endpoint.protocol) {
    case 'ipmi': {
      const { cipherSuite } = endpoint;
      const { ipmitool } = config;
      const own = { ...target, cipherSuite };
      const parts = { target: own, governor, exec, clock, ipmitool, readBack };
      return new IpmiDriver(names === undefined ? parts : { ...parts, names });
    }
    case 'webhook': {
      const { certificateSha256, webhook: calls } = endpoint;
      const own = { ...target, certificateSha256, calls: calls ?? noCalls };
      return new WebhookDriver({ target: own, governor, client, web, clock, readBack });
    }
    case 'redfish': {
      const { certificateSha256, expected } = endpoint;
      const own = { ...target, certificateSha256 };
      const parts = { target: own, governor, client, clock, options: config.redfish, readBack };
      return new RedfishDriver({ ...parts, ...(expected === undefined ? {} : { expected }) });
    }
  }
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
