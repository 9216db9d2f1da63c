/**
 * The section `dhcp` of the agent's configuration: every key with its default. Whether addresses
 * and ranges fit together is checked where they are used, at the start of the boot path.
 */
import { asMac, canonicalMac } from '@rackwright/dhcp';
import type { ConfigReader } from '@rackwright/platform';
import {
  declinedMsDefault,
  dhcpListenDefault,
  leaseSecondsDefault,
  leaseSecondsLimits,
  otherServerDefault,
  type ProxyDhcpConfig,
  type ReservationDhcpConfig,
} from './boot/index.ts';

/** Leases lie in the agent's state folder. */
export type AgentDhcpConfig =
  | { readonly mode: 'off' }
  | ProxyDhcpConfig
  | Omit<ReservationDhcpConfig, 'leasesPath' | 'formerLeasesPath'>;

/** Read in place of a text that is no MAC. */
const noMac = asMac('00:00:00:00:00:00');
/** 0 lets the system choose. */
const ports = [0, 65_535] as const;
const week = 7 * 86_400_000;
/** With a shorter time the agent would resume between two requests of another server's client. */
const quietMsMin = 1_000;

export function readDhcp(reader: ConfigReader): AgentDhcpConfig {
  const mode = reader.oneOf('mode', ['proxy', 'reservation', 'off'], 'proxy');
  if (mode === 'off') return { mode };
  const listen = {
    address: reader.text('address', dhcpListenDefault.address),
    port: reader.whole('port', ports, dhcpListenDefault.port),
    pxeAddress: reader.text('pxeAddress', dhcpListenDefault.pxeAddress),
    pxePort: reader.whole('pxePort', ports, dhcpListenDefault.pxePort),
    clientPort: reader.whole('clientPort', ports, dhcpListenDefault.clientPort),
    relayPort: reader.whole('relayPort', ports, dhcpListenDefault.relayPort),
    broadcastAddress: reader.text('broadcastAddress', dhcpListenDefault.broadcastAddress),
  };
  return mode === 'proxy' ? { mode, ...listen } : { mode, ...listen, ...readReservation(reader) };
}

function readReservation(reader: ConfigReader) {
  const range = reader.optionalSection('range', readRange);
  const discovery = reader.optionalSection('discovery', readRange);
  return {
    subnet: reader.section('subnet', readSubnet),
    reservations: reader.sections('reservations', (one) => {
      const text = one.text('mac');
      const form = 'a MAC like 52:54:00:77:00:01';
      const mac = canonicalMac(text) ?? one.refuse('mac', `has to be ${form}, not ${text}`, noMac);
      return { mac, address: one.text('address') };
    }),
    ...(range === undefined ? {} : { range }),
    ...(discovery === undefined ? {} : { discovery }),
    declinedMs: reader.whole('declinedMs', [0, week], declinedMsDefault),
    otherServer: reader.section('otherServer', (other) => ({
      quietMs: other.whole('quietMs', [quietMsMin, week], otherServerDefault.quietMs),
      probeMs: other.whole('probeMs', [0, week], otherServerDefault.probeMs),
    })),
  };
}

function readSubnet(reader: ConfigReader): ReservationDhcpConfig['subnet'] {
  const domainName = reader.optionalText('domainName');
  return {
    network: reader.text('network'),
    routers: reader.texts('routers', []),
    dnsServers: reader.texts('dnsServers', []),
    ...(domainName === undefined ? {} : { domainName }),
    leaseSeconds: reader.whole('leaseSeconds', leaseSecondsLimits, leaseSecondsDefault),
  };
}

function readRange(reader: ConfigReader): { readonly first: string; readonly last: string } {
  return { first: reader.text('first'), last: reader.text('last') };
}
