/**
 * Our boot path in reservation mode as a process of its own, so that it can be started in a network
 * namespace. What happens is one JSON line each on standard output. Ends with SIGTERM.
 */
import { type BootConfig, startBoot } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';

/** The argument: what the boot path is told, and the MACs of the rack's hosts. */
interface Told {
  readonly config: BootConfig;
  readonly knownMacs: readonly string[];
}

const { config, knownMacs } = JSON.parse(process.argv[2] ?? '') as Told;
const hosts = knownMacs.map((mac, index) => {
  return { hostUid: `u${index}`, hostName: `host${index}`, macs: [mac] };
});
const tell = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`);
const services = await startBoot(config, {
  udp: nodeUdp(),
  http: nodeHttp(),
  disk: nodeDisk(),
  clock: nodeClock(),
  log: nodeLog('debug', 2),
  memory: () => ({ snapshot: { generation: 1, hosts }, grants: [] }),
  onNetboot: () => {},
  onDhcpFault: (fault) => tell(fault),
});
tell({ kind: 'ready' });
process.once('SIGTERM', () => {
  void services.close().then(() => process.exit(0));
});
