/**
 * Our boot path as a process of its own, so that it can be started in a network namespace; with the
 * sockets that it is handed, if any. What happens is one JSON line each on standard output. Ends
 * with SIGTERM.
 */
import {
  AgentNetworkFaults,
  type BootConfig,
  defaultNetworkFaultLimits,
  startBoot,
} from '@rackwright/agent';
import {
  inheritedDescriptors,
  nodeClock,
  nodeDisk,
  nodeHttp,
  nodeLog,
  nodeUdp,
  openInherited,
} from '@rackwright/platform/node';

/** The argument: what the boot path is told, and the MACs of the rack's hosts. */
interface ServerArguments {
  readonly config: BootConfig;
  readonly knownMacs: readonly string[];
  /** All of them may boot the runner. */
  readonly granted?: boolean;
}

const { config, knownMacs, granted = false } = JSON.parse(process.argv[2] ?? '') as ServerArguments;
const hosts = knownMacs.map((mac, index) => {
  return { hostUid: `u${index}`, hostName: `host${index}`, macs: [mac] };
});
const grants = hosts.map(({ hostUid }) => ({
  ...{ hostUid, operationId: `${hostUid}/1/1/1`, bootToken: `token-${hostUid}` },
  ...{ openedAtMs: 0, expiresAtMs: Number.MAX_SAFE_INTEGER },
}));
const inherited = await openInherited(inheritedDescriptors(process.env, process.pid));
const tell = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
/** As the agent tells the control plane of them, at once. */
const networkFaults = new AgentNetworkFaults({
  clock: nodeClock(),
  report: ({ faults }) =>
    tell({
      kind: 'faults',
      faults: faults.map(({ type, mac, address }) => ({ type, mac, address })),
    }),
  limits: { ...defaultNetworkFaultLimits, spacingMs: 0 },
});
const services = await startBoot(config, {
  udp: nodeUdp(inherited),
  http: nodeHttp(),
  disk: nodeDisk(),
  clock: nodeClock(),
  log: nodeLog('debug', 2),
  memory: () => ({ snapshot: { generation: 1, hosts }, grants: granted ? grants : [] }),
  onNetboot: () => {},
  onDhcpFault: (fault) => {
    tell(fault);
    networkFaults.dhcp(fault);
  },
  onDhcpServerGone: (address) => networkFaults.serverGone(address),
});
tell({ kind: 'ready' });
process.once('SIGTERM', () => {
  networkFaults.stop();
  void services.close().then(() => process.exit(0));
});
