/** Figures that are read from the running agent at each scrape. */
import { countProcess, type Registry } from '@rackwright/metrics';
import type { ProcessFigures } from '@rackwright/platform';
import type { LinkStatus } from '../session/index.ts';
import { agentVersion } from '../version.ts';

export interface ObservedAgent {
  readonly status: () => LinkStatus;
  readonly leaseLeftMs: () => number;
  /** Reports that the control plane has not answered yet. */
  readonly unanswered: () => number;
  readonly transfers: () => number;
  /** When the agent's certificate ends, milliseconds since 1970. */
  readonly certificateEndMs: () => number;
  /** Unset: there are no figures of the process. */
  readonly processFigures?: () => ProcessFigures;
}

/** Declares the figures that are read at each scrape. */
export function observeAgent(registry: Registry, agent: ObservedAgent): void {
  const gauge = (name: string, help: string, read: () => number): void =>
    registry.gauge(name, help, {}, () => [{ labels: {}, value: read() }]);
  gauge(
    'rackwright_agent_session_connected',
    'Whether the control plane has welcomed this agent and the session stands: 1 or 0.',
    () => Number(agent.status().kind === 'connected'),
  );
  gauge(
    'rackwright_agent_lease_seconds',
    'How long something destructive may still begin without a word of the control plane. An ' +
      'agent without work lets it run out.',
    () => agent.leaseLeftMs() / 1_000,
  );
  gauge(
    'rackwright_agent_reports_unanswered',
    'Final reports that the control plane has not acknowledged.',
    () => agent.unanswered(),
  );
  gauge('rackwright_agent_tftp_transfers_active', 'TFTP transfers under way.', () =>
    agent.transfers(),
  );
  registry.gauge(
    'rackwright_certificate_expiry_timestamp_seconds',
    'When a certificate ends, seconds since 1970.',
    { certificate: ['agent'] },
    () => [{ labels: { certificate: 'agent' }, value: agent.certificateEndMs() / 1_000 }],
  );
  const { processFigures } = agent;
  if (processFigures !== undefined) {
    countProcess(registry, processFigures, { version: agentVersion });
  }
}
