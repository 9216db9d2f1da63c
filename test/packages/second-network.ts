/**
 * The agent on two provisioning networks: beside the site's DHCP server on one, the only server on
 * the other, whose interface comes while the agent is running. The scenario's machine then stands
 * on that second network, which has no way to the first.
 */
import type { Lab } from '../lab/lab.ts';
import { LAB_ADDRESS } from '../lab/netns.ts';
import { runProgram, until } from '../lab/processes.ts';
import { startRouter } from '../lab/radvd.ts';
import type { Site } from '../lab/site.ts';
import type { Container } from './container.ts';
import { property, untilActive } from './services.ts';

/** The interfaces that machines boot from; the second is not there at first. */
export const INTERFACES = ['br0', 'br1'] as const;
const [FIRST, SECOND] = INTERFACES;
const BOOT_PORTS = [67, 69, 4011];
const NETWORK = '10.78.0';
const RESTART_WAIT_MS = 60_000;

/** The agent's configuration: which of its addresses belongs to which interface. */
export const networksLine = `interfaces: ${JSON.stringify([
  { name: FIRST, serverAddress: LAB_ADDRESS.agent, dhcp: { mode: 'proxy' } },
  {
    name: SECOND,
    serverAddress: `${NETWORK}.1`,
    dhcp: {
      mode: 'reservation',
      subnet: { network: `${NETWORK}.0/24` },
      range: { first: `${NETWORK}.100`, last: `${NETWORK}.109` },
    },
  },
])}`;

/** Where boot ports are open, in the order of {@link bootPortsOn}; empty for nowhere. */
export async function openBootPorts(container: Container): Promise<string> {
  const args = ['ss', '--listening', '--udp', '--numeric', '--no-header'];
  const sockets = await container.run(args);
  const pattern = new RegExp(`\\s(\\S+?):(${BOOT_PORTS.join('|')})\\s`, 'g');
  return inOrder([...sockets.matchAll(pattern)].map(([, where, port]) => `${where}:${port}`));
}

/** The boot ports as they are listed when they are open on these interfaces only. */
export function bootPortsOn(...interfaces: readonly string[]): string {
  return inOrder(interfaces.flatMap((name) => BOOT_PORTS.map((port) => `0.0.0.0%${name}:${port}`)));
}

function inOrder(sockets: readonly string[]): string {
  return sockets.toSorted().join(' ');
}

/** The second interface comes: the agent serves it without anybody's doing. */
export async function checkSecondNetwork(site: Site, container: Container): Promise<void> {
  const { lab, findings } = site;
  const unit = 'rackwright-agent';
  const before = await property(container, unit, 'NRestarts');
  await makeNetwork(lab);
  const both = bootPortsOn(FIRST, SECOND);
  await until(`the boot ports on ${SECOND}`, RESTART_WAIT_MS, async () => {
    return (await openBootPorts(container)) === both;
  });
  await untilActive(container, unit);
  const open = await openBootPorts(container);
  findings.check('boot ports are open on both, and nowhere else', open === both, open);
  const starts = Number(await property(container, unit, 'NRestarts')) - Number(before);
  findings.check('the agent has started once for the new interface', starts === 1, `${starts}`);
  const journal = await container.run(['journalctl', '--no-pager', '--unit', unit]);
  const isTold = journal.includes(`interface ${SECOND} has come`);
  findings.check('it has said why', isTold, journal.slice(-2_000));
}

/** An interface of the agent's machine, and the lab's first machine on it instead. */
async function makeNetwork(lab: Lab): Promise<void> {
  const { namespace } = lab.network;
  const ip = (text: string) => runProgram('ip', ['-n', namespace, ...text.split(' ')]);
  await ip(`link add ${SECOND} type bridge`);
  await ip(`addr add ${NETWORK}.1/24 dev ${SECOND}`);
  await ip(`addr add fd78::1/64 dev ${SECOND} nodad`);
  await ip(`link set ${SECOND} up`);
  await ip(`link set tap0 master ${SECOND}`);
  startRouter(lab.undo, { namespace, folder: lab.folder, interface: SECOND });
}
