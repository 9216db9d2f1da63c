/**
 * Ethernets in namespaces of our own: a bridge for each with the address server, and as many
 * clients and other servers on it as a test wants, each in a namespace of its own. Nothing is
 * carried from one Ethernet to another.
 *
 * 1. The machine's own network is not touched.
 */
import { makeNamespace, namespaceName, sweepNamespaces } from '../../lab/namespaces.ts';
import { runProgram } from '../../lab/processes.ts';
import type { Undo } from '../../lab/undo.ts';

export interface Wire {
  /** Where the server is; its interface is `br0` with {@link serverAddress}. */
  readonly namespace: string;
  /** Another Ethernet, on which the server has an interface of that name with this address. */
  extend(bridge: string, address: string): Promise<void>;
  /** Plugs another machine in, its interface `eth0` without an address; its namespace. */
  plug(name: string, mac: string, bridge?: string): Promise<string>;
}

export const serverAddress = '10.77.0.1';

export async function makeWire(undo: Undo): Promise<Wire> {
  await sweepNamespaces('rwdhcp');
  const namespace = namespaceName('rwdhcp', 'server');
  await makeNamespace(undo, namespace);
  const ip = (text: string) => runProgram('ip', ['-n', namespace, ...text.split(' ')]);
  await ip('link set lo up');
  // A new namespace may have the machine's own setting.
  await runProgram('sysctl', ['-q', '-w', 'net.ipv4.ip_forward=0'], { namespace });
  const extend: Wire['extend'] = async (bridge, address) => {
    await ip(`link add ${bridge} type bridge forward_delay 0`);
    await ip(`addr add ${address}/24 dev ${bridge}`);
    await ip(`link set ${bridge} up`);
  };
  await extend('br0', serverAddress);
  // Answers to clients without an address go to the limited broadcast.
  await ip('route add 255.255.255.255 dev br0');
  let plugged = 0;
  return {
    namespace,
    extend,
    async plug(name, mac, bridge = 'br0') {
      const other = namespaceName('rwdhcp', name);
      await makeNamespace(undo, other);
      plugged += 1;
      await ip(`link add port${plugged} type veth peer name eth0 address ${mac} netns ${other}`);
      await ip(`link set port${plugged} master ${bridge} up`);
      await runProgram('ip', ['-n', other, 'link', 'set', 'lo', 'up']);
      await runProgram('ip', ['-n', other, 'link', 'set', 'eth0', 'up']);
      return other;
    },
  };
}
