/** For each alert that ships: what the figures say when it fires. */

/** Series by their text, with values as `promtool test rules` writes them: one a minute. */
export interface AlertScenario {
  readonly series: Readonly<Record<string, string>>;
  /** When it fires, minutes from the start. */
  readonly atMinutes: number;
}

const agent = 'job="rackwright-agent",instance="a1"';
const cp = 'job="rackwright-controlplane",instance="cp1"';
const onCp = (name: string, labels = ''): string => `${name}{${cp}${labels}}`;
const onAgent = (name: string, labels = ''): string => `${name}{${agent}${labels}}`;

/** By alert. Each fires in its own scenario, once, and no other one does. */
export const alertScenarios: Readonly<Record<string, AlertScenario>> = {
  RackwrightControlPlaneDown: { series: { [onCp('up')]: '1x5 0x60' }, atMinutes: 10 },
  RackwrightAgentAway: {
    series: {
      [onCp('rackwright_agent_connected', ',rack="r1"')]: '1x5 0x60',
      // The agent of r2 is connected to another replica.
      [onCp('rackwright_agent_connected', ',rack="r2"')]: '0x60',
      'rackwright_agent_connected{instance="cp2",rack="r2"}': '1x60',
    },
    atMinutes: 15,
  },
  RackwrightRackWaitsForPerson: {
    series: {
      [onCp('rackwright_racks_stopped', ',reason="restored"')]: '0x5 1x60',
      // A person has frozen it.
      [onCp('rackwright_racks_stopped', ',reason="frozen"')]: '3x60',
    },
    atMinutes: 15,
  },
  RackwrightRunsFail: {
    series: {
      [onCp('rackwright_runs_total', ',kind="clean",outcome="failed"')]: '0+1x90',
      [onCp('rackwright_runs_total', ',kind="clean",outcome="succeeded"')]: '0+1x90',
    },
    atMinutes: 60,
  },
  RackwrightHostsFaulty: {
    series: {
      [onCp('rackwright_hosts', ',state="available"')]: '100x60',
      [onCp('rackwright_rack_faulty_hosts', ',rack="r1"')]: '0x5 20x60',
    },
    atMinutes: 40,
  },
  RackwrightHostsUnreadable: {
    series: { [onCp('rackwright_hosts_unreadable')]: '0x5 1x60' },
    atMinutes: 15,
  },
  RackwrightStoreFails: {
    series: {
      [onCp('rackwright_store_call_seconds_count', ',call="get",result="failed"')]: '0+10x60',
    },
    atMinutes: 20,
  },
  RackwrightStoreSlow: {
    series: {
      [onCp('rackwright_store_call_seconds_bucket', ',call="put",le="1.0"')]: '0x60',
      [onCp('rackwright_store_call_seconds_bucket', ',call="put",le="2.5"')]: '0+10x60',
      [onCp('rackwright_store_call_seconds_bucket', ',call="put",le="+Inf"')]: '0+10x60',
    },
    atMinutes: 30,
  },
  RackwrightCallsRefused: {
    series: { [onCp('rackwright_port_calls_refused_total', ',port="operators"')]: '0+10x60' },
    atMinutes: 30,
  },
  RackwrightCertificateEnds: {
    series: {
      [onCp('rackwright_certificate_expiry_timestamp_seconds', ',certificate="authority"')]:
        '864000x300',
      [onCp('rackwright_certificate_expiry_timestamp_seconds', ',certificate="server"')]:
        '9000000x300',
    },
    atMinutes: 120,
  },
  RackwrightRackFaulty: {
    series: {
      [onCp('rackwright_rack_faults', ',fault="foreign-dhcp-server"')]: '0x5 1x60',
      [onCp('rackwright_rack_faults', ',fault="address-declined"')]: '0x60',
    },
    atMinutes: 15,
  },
  RackwrightEventsLate: {
    series: {
      [onCp('rackwright_event_lag_seconds', ',target="webhook"')]: '0x5 0+60x60',
      [onCp('rackwright_event_lag_seconds', ',target="nats"')]: '0x65',
    },
    atMinutes: 30,
  },
  RackwrightEventsGivenUp: {
    series: {
      [onCp('rackwright_event_attempts_total', ',target="webhook",result="dead"')]: '0x5 3x60',
      [onCp('rackwright_event_attempts_total', ',target="webhook",result="failed"')]: '0+1x60',
    },
    atMinutes: 10,
  },
  RackwrightAgentDown: { series: { [onAgent('up')]: '1x5 0x60' }, atMinutes: 10 },
  RackwrightAgentNoSession: {
    series: { [onAgent('rackwright_agent_session_connected')]: '1x5 0x60' },
    atMinutes: 15,
  },
  RackwrightReportsUnanswered: {
    series: {
      [onAgent('rackwright_agent_reports_unanswered')]: '2x60',
      [onAgent('rackwright_agent_session_connected')]: '1x60',
    },
    atMinutes: 30,
  },
  RackwrightForeignDhcpServer: {
    series: {
      [onAgent('rackwright_agent_dhcp_quiet')]: '0x5 1x60',
      [onAgent('rackwright_agent_dhcp_faults_total', ',fault="otherServer"')]: '0x5 1x60',
    },
    atMinutes: 8,
  },
  RackwrightAddressConflict: {
    series: {
      [onAgent('rackwright_agent_dhcp_faults_total', ',fault="declined"')]: '0x5 1x60',
    },
    atMinutes: 10,
  },
  RackwrightNoAddressLeft: {
    series: {
      [onAgent('rackwright_agent_dhcp_faults_total', ',fault="noAddressLeft"')]: '0x5 1x60',
    },
    atMinutes: 10,
  },
  RackwrightBootsLost: {
    series: {
      [onAgent('rackwright_agent_boots_total', ',outcome="lost"')]: '0+1x120',
      [onAgent('rackwright_agent_boots_total', ',outcome="arrived"')]: '0+1x120',
    },
    atMinutes: 90,
  },
  RackwrightBmcRefusesPassword: {
    series: {
      [onAgent('rackwright_agent_bmc_refusals_total', ',reason="authentication"')]: '0+1x60',
    },
    atMinutes: 40,
  },
  RackwrightBmcsSilent: {
    series: {
      [onAgent('rackwright_agent_bmc_call_seconds_count', ',result="transient"')]: '0+2x60',
      [onAgent('rackwright_agent_bmc_call_seconds_count', ',result="ok"')]: '0+1x60',
    },
    atMinutes: 40,
  },
  RackwrightAgentCertificateEnds: {
    series: {
      [onAgent('rackwright_certificate_expiry_timestamp_seconds', ',certificate="agent"')]:
        '50000x300',
    },
    atMinutes: 120,
  },
  RackwrightEventLoopLate: {
    series: { [onCp('nodejs_eventloop_lag_seconds', ',figure="p99"')]: '0.8x60' },
    atMinutes: 20,
  },
  RackwrightMetricsUnread: {
    series: { [onCp('rackwright_metrics_unread_total')]: '0x5 1x60' },
    atMinutes: 10,
  },
};

/** As all of it is when nothing is wrong; no alert fires. */
export const healthy: AlertScenario = {
  series: {
    [onCp('up')]: '1x180',
    [onAgent('up')]: '1x180',
    [onCp('rackwright_agent_connected', ',rack="r1"')]: '1x180',
    [onCp('rackwright_racks_stopped', ',reason="frozen"')]: '1x180',
    [onCp('rackwright_racks_stopped', ',reason="restored"')]: '0x180',
    [onCp('rackwright_runs_total', ',kind="clean",outcome="failed"')]: '0 1 2x180',
    [onCp('rackwright_runs_total', ',kind="clean",outcome="succeeded"')]: '0+1x180',
    [onCp('rackwright_hosts', ',state="available"')]: '100x180',
    [onCp('rackwright_rack_faulty_hosts', ',rack="r1"')]: '5x180',
    [onCp('rackwright_hosts_unreadable')]: '0x180',
    [onCp('rackwright_store_call_seconds_count', ',call="get",result="ok"')]: '0+100x180',
    [onCp('rackwright_store_call_seconds_bucket', ',call="put",le="1.0"')]: '0+10x180',
    [onCp('rackwright_store_call_seconds_bucket', ',call="put",le="+Inf"')]: '0+10x180',
    [onCp('rackwright_port_calls_refused_total', ',port="operators"')]: '0x180',
    [onCp('rackwright_rack_faults', ',fault="foreign-dhcp-server"')]: '0x180',
    [onCp('rackwright_event_lag_seconds', ',target="webhook"')]: '0 30 5 0x180',
    [onCp('rackwright_event_attempts_total', ',target="webhook",result="dead"')]: '2x180',
    [onCp('rackwright_event_attempts_total', ',target="webhook",result="failed"')]: '0+1x180',
    [onCp('rackwright_certificate_expiry_timestamp_seconds', ',certificate="authority"')]:
      '90000000x180',
    [onAgent('rackwright_agent_session_connected')]: '1x180',
    [onAgent('rackwright_agent_reports_unanswered')]: '0 1 0 1 0 0x180',
    [onAgent('rackwright_agent_dhcp_quiet')]: '0x180',
    [onAgent('rackwright_agent_dhcp_faults_total', ',fault="declined"')]: '2x180',
    [onAgent('rackwright_agent_boots_total', ',outcome="lost"')]: '1x180',
    [onAgent('rackwright_agent_bmc_call_seconds_count', ',result="ok"')]: '0+10x180',
    [onAgent('rackwright_agent_bmc_call_seconds_count', ',result="transient"')]: '0+1x180',
    [onAgent('rackwright_certificate_expiry_timestamp_seconds', ',certificate="agent"')]:
      '600000x180',
    [onAgent('nodejs_eventloop_lag_seconds', ',figure="p99"')]: '0.01x180',
    [onAgent('rackwright_metrics_unread_total')]: '0x180',
  },
  atMinutes: 150,
};
