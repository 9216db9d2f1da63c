/**
 * The agent's metrics. Each part that works gets a narrow interface to report by.
 *
 * C1 No metric has a label with a host, a MAC or an address: a rack has one agent, and the scraper
 *    knows which.
 */
import type { OperationId } from '@rackwright/messages';
import { callBounds, Registry, workBounds } from '@rackwright/metrics';
import type { Clock } from '@rackwright/platform';
import type { BootMeter } from '../boot/index.ts';
import type { BmcMeter } from './bmc-meter.ts';
import { BootsServed } from './boots-served.ts';

/** The registry, and the handles of its metrics. */
export interface AgentFigures {
  readonly registry: Registry;
  readonly boot: BootMeter;
  readonly onBmcCall: BmcMeter;
  /** A runner has bound the boot of this operation. */
  readonly bootArrived: (operationId: OperationId) => void;
  readonly stop: () => void;
}

/** The figures of one process. */
export function createAgentFigures(clock: Clock): AgentFigures {
  const registry = new Registry();
  const boots = countBoots(registry, clock);
  return {
    registry,
    boot: {
      ...countDhcp(registry),
      ...countTftp(registry),
      ...countHttp(registry),
      runnerServed: (operationId) => boots.noteServed(operationId),
    },
    onBmcCall: countBmc(registry),
    bootArrived: (operationId) => boots.noteArrived(operationId),
    stop: () => boots.stop(),
  };
}

function countBoots(registry: Registry, clock: Clock): BootsServed {
  const served = registry.counter(
    'rackwright_agent_boots_total',
    'Boots of the runner whose script was given out, by whether the runner has come.',
    { outcome: ['arrived', 'lost'] },
  );
  const durations = registry.durations(
    'rackwright_agent_boot_duration_seconds',
    'From the script that starts the runner to the runner’s first message.',
    {},
    workBounds,
  );
  return new BootsServed({
    clock,
    onArrived: (seconds) => {
      served.add({ outcome: 'arrived' });
      durations.observe({}, seconds);
    },
    onLost: () => served.add({ outcome: 'lost' }),
  });
}

type Dhcp = Pick<BootMeter, 'dhcpAsked' | 'dhcpTrouble' | 'dhcpFault' | 'dhcpQuiet'>;

function countDhcp(registry: Registry): Dhcp {
  const requests = registry.counter(
    'rackwright_agent_dhcp_requests_total',
    'DHCP requests, by which half of the service decided, and whether it answered.',
    { by: ['proxy', 'server'], answered: ['yes', 'no'] },
  );
  const troubles = registry.counter(
    'rackwright_agent_dhcp_refused_total',
    'Datagrams to the DHCP ports that are no DHCP packets, and troubles of the sockets.',
    {},
  );
  const faults = registry.counter(
    'rackwright_agent_dhcp_faults_total',
    'What keeps hosts from their addresses: another DHCP server was seen, a client declined its ' +
      'address because somebody else has it, or a range has no address left.',
    { fault: ['otherServer', 'declined', 'noAddressLeft'] },
  );
  const quiet = new Set<object>();
  registry.gauge(
    'rackwright_agent_dhcp_quiet',
    'Networks on which the DHCP server is silent because another one is at work.',
    {},
    () => [{ labels: {}, value: quiet.size }],
  );
  return {
    dhcpAsked: (by, isAnswered) => requests.add({ by, answered: isAnswered ? 'yes' : 'no' }),
    dhcpTrouble: () => troubles.add({}),
    dhcpFault: (fault) => faults.add({ fault }),
    dhcpQuiet: (subnet, isQuiet) => {
      if (isQuiet) quiet.add(subnet);
      else quiet.delete(subnet);
    },
  };
}

const transferEnds = [
  'complete',
  'aborted',
  'clientError',
  'timedOut',
  'refused',
  'protocolError',
  'denied',
] as const;

function countTftp(registry: Registry): Pick<BootMeter, 'tftpRefused' | 'tftpEnded'> {
  const transfers = registry.counter(
    'rackwright_agent_tftp_transfers_total',
    'TFTP transfers, by how they ended; those that were refused never began.',
    { end: transferEnds },
  );
  const bytes = registry.counter(
    'rackwright_agent_tftp_bytes_total',
    'Bytes of files that were sent whole by TFTP.',
    {},
  );
  return {
    tftpRefused: () => transfers.add({ end: 'denied' }),
    tftpEnded: (end, sent) => {
      transfers.add({ end });
      bytes.add({}, sent);
    },
  };
}

function countHttp(registry: Registry): Pick<BootMeter, 'httpAnswered'> {
  const targets = [
    'script',
    'hostFile',
    'file',
    'blob',
    'seed',
    'phoneHome',
    'grubStart',
    'malformed',
    'nothing',
  ] as const;
  const requests = registry.counter(
    'rackwright_agent_http_requests_total',
    'HTTP requests of machines that boot, by what was asked for and the class of the answer.',
    { what: targets, status: ['2xx', '3xx', '4xx', '5xx'] },
  );
  const bytes = registry.counter(
    'rackwright_agent_http_bytes_total',
    'Bytes of the bodies of HTTP answers.',
    { what: targets },
  );
  const classes = { 2: '2xx', 3: '3xx', 4: '4xx' } as const;
  return {
    httpAnswered: (target, status, sent) => {
      const digit = Math.floor(status / 100);
      const of = digit === 2 || digit === 3 || digit === 4 ? classes[digit] : '5xx';
      requests.add({ what: target, status: of });
      bytes.add({ what: target }, sent);
    },
  };
}

function countBmc(registry: Registry): BmcMeter {
  const calls = registry.durations(
    'rackwright_agent_bmc_call_seconds',
    'Calls of BMCs, without their time in the queue.',
    { protocol: ['ipmi', 'redfish', 'webhook'], result: ['ok', 'failed', 'transient'] },
    callBounds,
  );
  const refusals = registry.counter(
    'rackwright_agent_bmc_refusals_total',
    'Calls of BMCs that did not succeed, by why; some were never sent.',
    { protocol: ['ipmi', 'redfish', 'webhook'], reason: { valuesMax: 32 } },
  );
  return ({ protocol, result, reason, seconds }) => {
    if (seconds !== undefined) calls.observe({ protocol, result }, seconds);
    if (reason !== undefined) refusals.add({ protocol, reason });
  };
}
