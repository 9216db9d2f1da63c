/**
 * One boot path on two networks between which there is no way, and on each the clients of BusyBox
 * and curl: every address that they are told or answered from is the one of their own network.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BootConfig } from '@rackwright/agent';
import { afterAll, beforeAll, describe, expect, type TestContext, test } from 'vitest';
import { startProcess, tryProgram, until, within } from '../../lab/processes.ts';
import { createUndo, type Undo } from '../../lab/undo.ts';
import { peer } from '../peer.ts';
import { AddressClient, type Report } from './address-clients.ts';
import { makeWire, type Wire } from './wire.ts';

const waitMs = 240_000;
const firmware = 'PXEClient:Arch:00007:UNDI:003016';
/** "iPXE" in option 77. */
const userClass = ['-x', '0x4d:69505845'];
const httpPort = 8080;

const networks = [
  { bridge: 'br0', network: '10.77.0', mac: '52:54:00:77:00:01', other: '10.78.0.1' },
  { bridge: 'br1', network: '10.78.0', mac: '52:54:00:78:00:01', other: '10.77.0.1' },
] as const;
type Network = (typeof networks)[number];
const addressOn = ({ network }: Network): string => `${network}.1`;

interface Site {
  readonly folder: string;
  readonly wire: Wire;
  readonly clients: ReadonlyMap<string, AddressClient>;
}

let undo: Undo | undefined;
let site: Site | undefined;

const programs = ['ip', 'sysctl', 'busybox', 'curl', 'python3'];
const missing = (): string | undefined => {
  if (process.getuid?.() !== 0) return 'not root';
  for (const program of programs) {
    const found = peer(program);
    if (found.kind === 'missing') return found.reason;
  }
  return undefined;
};

beforeAll(async () => {
  if (missing() !== undefined) return;
  undo = createUndo();
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-interfaces-'));
  undo.add('remove files', () => rmSync(folder, { recursive: true }));
  const wire = await makeWire(undo);
  await wire.extend('br1', '10.78.0.1');
  await startServer(undo, folder, wire);
  const clients = new Map<string, AddressClient>();
  for (const { bridge, mac } of networks) {
    const namespace = await wire.plug(`on${bridge}`, mac, bridge);
    clients.set(bridge, new AddressClient(undo, folder, bridge, namespace));
  }
  site = { folder, wire, clients };
});

afterAll(async () => {
  const failures = (await undo?.run()) ?? [];
  if (failures.length > 0) throw new Error(failures.join('; '));
});

async function startServer(undone: Undo, folder: string, wire: Wire): Promise<void> {
  const file = (name: string) => ({ name, path: join(folder, name) });
  const config: BootConfig = {
    interfaces: networks.map((one) => interfaceOf(one, folder)),
    tftp: { address: '0.0.0.0', port: 69 },
    http: { address: '0.0.0.0', port: httpPort },
    loaders: { uefiX64: 'snponly.efi' },
    loaderFiles: [file('snponly.efi')],
    files: ['vmlinuz', 'initrd'].map(file),
    runner: {
      kernel: 'vmlinuz',
      initrd: 'initrd',
      agentPort: 7443,
      fingerprint: '00'.repeat(32),
      kernelArguments: [],
    },
  };
  writeFileSync(join(folder, 'snponly.efi'), Buffer.alloc(100_000, 'a loader '));
  for (const { name, path } of config.files) writeFileSync(path, `this is ${name}`);
  const logFile = join(folder, 'server.log');
  writeFileSync(logFile, '');
  const main = join(import.meta.dirname, 'address-server/main.ts');
  const told = { config, knownMacs: networks.map(({ mac }) => mac), granted: true };
  const bridges = networks.map(({ bridge }) => bridge).join(',');
  const handOver = [join(import.meta.dirname, 'hand-over.py'), bridges, '67,69,4011'];
  const server = startProcess(undone, {
    name: 'boot path',
    file: 'python3',
    args: [...handOver, process.execPath, main, JSON.stringify(told)],
    logFile,
    namespace: wire.namespace,
  });
  const isReady = (): boolean => readFileSync(logFile, 'utf8').includes('"kind":"ready"');
  const isSettled = (): boolean => isReady() || !server.isRunning();
  await until('the start of the boot path', waitMs, isSettled, logFile);
  if (!isReady()) throw new Error(readFileSync(logFile, 'utf8'));
}

function interfaceOf(one: Network, folder: string): BootConfig['interfaces'][number] {
  const { bridge, network } = one;
  return {
    name: bridge,
    serverAddress: addressOn(one),
    dhcp: {
      mode: 'reservation',
      ...{ address: '0.0.0.0', port: 67, pxeAddress: '0.0.0.0', pxePort: 4011 },
      ...{ clientPort: 68, relayPort: 67, broadcastAddress: '255.255.255.255' },
      subnet: { network: `${network}.0/24`, routers: [], dnsServers: [], leaseSeconds: 600 },
      reservations: [],
      range: { first: `${network}.100`, last: `${network}.109` },
      declinedMs: 600_000,
      otherServer: { quietMs: 60_000, probeMs: 0 },
      leasesPath: join(folder, `leases-${bridge}`),
    },
  };
}

function here({ bridge }: Network, context: TestContext): Site & { client: AddressClient } {
  const reason = missing();
  const client = site?.clients.get(bridge);
  if (reason !== undefined || site === undefined || client === undefined) {
    return context.skip(reason ?? 'no network');
  }
  return { ...site, client };
}

/** What firmware that says `args` of itself is told with its address. */
async function boot(client: AddressClient, args: readonly string[]): Promise<Report> {
  const running = client.udhcpc('/bin/busybox', ['-q', '-n', '-V', firmware, ...args]);
  expect(await running.ended, readFileSync(running.logFile, 'utf8')).toBe(0);
  const last = client.reports('bound').at(-1);
  if (last === undefined) throw new Error('udhcpc reported no lease');
  return last;
}

const curl = (namespace: string, ...args: string[]) =>
  tryProgram(within(namespace, ['curl', '-sS', '--max-time', '20', ...args]), {});

describe.each(networks)('a machine on $bridge', (network) => {
  const address = addressOn(network);

  test('is told of its network’s address by DHCP, and loads from it by TFTP', async (context) => {
    const { client, folder } = here(network, context);
    const told = await boot(client, []);
    expect(told).toMatchObject({ serverid: address, siaddr: address });
    expect(told['ip']).toMatch(new RegExp(`^${network.network}\\.10\\d$`));
    const target = join(folder, `${network.bridge}.efi`);
    // curl takes no block from another address than the one that it has asked.
    const url = `tftp://${told['siaddr']}/${told['boot_file']}`;
    const { code, err } = await curl(client.namespace, '-o', target, url);
    expect(code, err).toBe(0);
    const loader = readFileSync(join(folder, 'snponly.efi'));
    expect(Buffer.compare(readFileSync(target), loader)).toBe(0);
  });

  test('finds script, kernel and agent at that address', async (context) => {
    const { client } = here(network, context);
    const { boot_file: url = '' } = await boot(client, userClass);
    expect(url).toContain(`http://${address}:${httpPort}/boot/`);
    const script = await curl(client.namespace, url);
    expect(script.err).toBe('');
    expect(script.out.match(/\b\d+\.\d+\.\d+\.\d+(:\d+)?/g)).toEqual([
      ...[`${address}:${httpPort}`, `${address}:7443`, `${address}:${httpPort}`],
    ]);
    const kernel = /kernel (\S+)/.exec(script.out)?.[1] ?? '';
    expect((await curl(client.namespace, kernel)).out).toBe('this is vmlinuz');
  });

  test('has no way to the address of the other network', async (context) => {
    const { client } = here(network, context);
    await boot(client, []);
    const { code } = await curl(client.namespace, `http://${network.other}:${httpPort}/`);
    // curl's "could not connect to host".
    expect(code).toBe(7);
  });
});

test('a script that is asked for at an address of no network is refused', async (context) => {
  const [network] = networks;
  const { wire } = here(network, context);
  const path = `boot/${network.mac.replaceAll(':', '-')}/script.ipxe`;
  const url = `http://127.0.0.1:${httpPort}/${path}`;
  const { out } = await curl(wire.namespace, '-o', '/dev/null', '-w', '%{http_code}', url);
  expect(out).toBe('421');
});

test('each network has leases of its own', async (context) => {
  const { client, folder } = here(networks[1], context);
  await boot(client, []);
  const leases = join(folder, 'leases-br1');
  await until('the lease on disk', waitMs, () => readFileSync(leases, 'utf8').includes('bound'));
  expect(JSON.parse(readFileSync(leases, 'utf8')).leases).toMatchObject([{ mac: networks[1].mac }]);
});
