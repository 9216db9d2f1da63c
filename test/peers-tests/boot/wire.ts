/**
 * Ethernets in namespaces of our own: a bridge for each with the address server, and as many
 * clients and other servers on it as a test wants, each in a namespace of its own. Nothing is
 * carried from one Ethernet to another.
 *
 * 1. The machine's own network is not touched.
 * 2. Names carry our process id; what a killed run left behind is removed by the next.
 */
import { existsSync } from 'node:fs';
import { runProgram, until } from '../../lab/processes.ts';
import type { Undo } from '../../lab/undo.ts';

const namePattern = /^rwdhcp-(\d+)-[a-z0-9]+$/;

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
  await sweep();
  const prefix = `rwdhcp-${process.pid}-`;
  const namespace = await makeNamespace(undo, `${prefix}server`);
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
      const other = await makeNamespace(undo, `${prefix}${name}`);
      plugged += 1;
      await ip(`link add port${plugged} type veth peer name eth0 address ${mac} netns ${other}`);
      await ip(`link set port${plugged} master ${bridge} up`);
      await runProgram('ip', ['-n', other, 'link', 'set', 'lo', 'up']);
      await runProgram('ip', ['-n', other, 'link', 'set', 'eth0', 'up']);
      return other;
    },
  };
}

async function makeNamespace(undo: Undo, name: string): Promise<string> {
  undo.add(`remove ${name}`, () => removeNamespace(name));
  await runProgram('ip', ['netns', 'add', name]);
  return name;
}

async function sweep(): Promise<void> {
  const names = (await runProgram('ip', ['netns', 'list'])).split('\n');
  for (const line of names) {
    const name = line.split(' ')[0] ?? '';
    const pid = namePattern.exec(name)?.[1];
    if (pid !== undefined && !existsSync(`/proc/${pid}`)) await removeNamespace(name);
  }
}

/** With what still runs in it: dhclient goes its own way once it has a lease. */
async function removeNamespace(name: string): Promise<void> {
  const pids = async () => (await runProgram('ip', ['netns', 'pids', name])).split('\n');
  await until(`the end of the processes in ${name}`, 60_000, async () => {
    const left = (await pids()).filter(Boolean).map(Number);
    for (const pid of left) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
    return left.length === 0;
  });
  await runProgram('ip', ['netns', 'delete', name]);
}
