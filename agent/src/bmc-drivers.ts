import { type BmcHealth, Governor, Governors, IpmiDriver } from '@rackwright/bmc';
import type { Clock, Exec, Log } from '@rackwright/platform';
import type { AgentConfig } from './config.ts';
import type { BmcDrivers } from './operations/index.ts';

/** The drivers of a rack's BMCs: one governor per address for whoever speaks to it. */
export function createBmcDrivers(
  config: AgentConfig['bmc'],
  { clock, exec, log }: { readonly clock: Clock; readonly exec: Exec; readonly log: Log },
): BmcDrivers {
  const governors = new Governors(
    (at) => new Governor(clock, config.governor, (health) => logHealth(log, at, health)),
  );
  return {
    firmware: config.firmware,
    driver: ({ address, port, cipherSuite, credential }) => {
      const { username: user, password } = credential;
      const name = `${credential.name}@${credential.version}`;
      return new IpmiDriver({
        target: { address, port, cipherSuite, user, password, credential: name },
        governor: governors.at(`${address}:${port}`),
        exec,
        clock,
        ipmitool: config.ipmitool,
        readBack: config.readBack,
      });
    },
    forget: (address, port) => governors.forget(`${address}:${port}`),
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
