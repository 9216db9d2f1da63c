/**
 * The lab's network: a namespace with a bridge, where agent, control plane, BMCs and machines live,
 * and a second one on the same bridge for the site's own DHCP server and router.
 *
 * 1. Nothing of it touches the machine's own network.
 */
import { randomBytes } from 'node:crypto';
import { makeNamespace, namespaceName, namespacesWhere, sweepNamespaces } from './namespaces.ts';
import { runProgram } from './processes.ts';
import type { Undo } from './undo.ts';

/** The addresses of the lab. All of them are in 10.77.0.0/24. */
export const LAB_ADDRESS = {
  agent: '10.77.0.1',
  site: '10.77.0.2',
  /** Of agent and site by IPv6, in fd77::/64. */
  agent6: 'fd77::1',
  site6: 'fd77::2',
  network: '10.77.0.0',
  leasesFrom: '10.77.0.100',
  leasesTo: '10.77.0.199',
  prefix: 24,
} as const;

/** Address of the BMC number `index` (0…39). */
export function bmcAddress(index: number): string {
  return `10.77.0.${20 + index}`;
}

/** The lab's two namespaces. */
export interface LabNetwork {
  /** Agent, control plane, BMCs, machines; bridge `br0`, taps `tap0…`. */
  readonly namespace: string;
  /** The site's DHCP server and router; its interface is `site0`. */
  readonly siteNamespace: string;
}

/** Makes the network with a tap for each of `machines` machines. */
export async function makeNetwork(undo: Undo, machines: number): Promise<LabNetwork> {
  await sweepNamespaces('rwlab');
  const namespace = namespaceName('rwlab', randomBytes(2).toString('hex'));
  const siteNamespace = `${namespace}-site`;
  for (const name of [namespace, siteNamespace]) await makeNamespace(undo, name);
  const ip = (text: string): Promise<string> =>
    runProgram('ip', ['-n', namespace, ...text.split(' ')]);
  const site = (text: string): Promise<string> =>
    runProgram('ip', ['-n', siteNamespace, ...text.split(' ')]);
  await ip('link set lo up');
  await ip('link add br0 type bridge');
  await ip(`addr add ${LAB_ADDRESS.agent}/${LAB_ADDRESS.prefix} dev br0`);
  await ip(`addr add ${LAB_ADDRESS.agent6}/64 dev br0 nodad`);
  for (let index = 0; index < machines; index += 1) {
    await ip(`addr add ${bmcAddress(index)}/32 dev br0`);
    await ip(`tuntap add tap${index} mode tap`);
    await ip(`link set tap${index} master br0 up`);
  }
  await ip(`link add site-br type veth peer name site0 netns ${siteNamespace}`);
  await ip('link set site-br master br0 up');
  await ip('link set br0 up');
  // Answers to hosts without an address go to the limited broadcast: every client hears it.
  await ip('route add 255.255.255.255 dev br0');
  await site('link set lo up');
  await site('link set site0 up');
  await site(`addr add ${LAB_ADDRESS.site}/${LAB_ADDRESS.prefix} dev site0`);
  await site(`addr add ${LAB_ADDRESS.site6}/64 dev site0 nodad`);
  return { namespace, siteNamespace };
}

/** Names of the lab namespaces that exist, living or left behind. */
export function labNamespaces(): Promise<string[]> {
  return namespacesWhere(({ kind }) => kind === 'rwlab');
}
