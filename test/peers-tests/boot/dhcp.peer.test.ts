/** Our address server and the clients of ISC and BusyBox; dnsmasq as the other server. */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { BootConfig, BootInterface } from '@rackwright/agent';
import { asMac } from '@rackwright/dhcp';
import { RackFaultType } from '@rackwright/messages';
import { afterEach, beforeEach, describe, expect, type TestContext, test } from 'vitest';
import { runProgram, type Started, startProcess, until } from '../../lab/processes.ts';
import { createUndo, type Undo } from '../../lab/undo.ts';
import { peer } from '../peer.ts';
import { AddressClient, reportsIn } from './address-clients.ts';
import { makeWire, serverAddress, type Wire } from './wire.ts';

const mac = {
  one: '52:54:00:77:00:01',
  two: '52:54:00:77:00:02',
  reserved: '52:54:00:77:00:10',
  stranger: '52:54:00:77:00:99',
} as const;

const waitMs = 180_000;

interface Site {
  readonly undo: Undo;
  readonly folder: string;
  readonly wire: Wire;
}

let site: Site | undefined;

beforeEach(async () => {
  if (missing('ip') !== undefined) return;
  const undo = createUndo();
  const folder = mkdtempSync(join(tmpdir(), 'rackwright-dhcp-'));
  undo.add('remove files', () => rmSync(folder, { recursive: true }));
  site = { undo, folder, wire: await makeWire(undo) };
});

afterEach(async () => {
  const failures = (await site?.undo.run()) ?? [];
  site = undefined;
  if (failures.length > 0) throw new Error(failures.join('; '));
});

/** Why a test of this program cannot run here. */
function missing(program: string): string | undefined {
  if (process.getuid?.() !== 0) return 'not root';
  const found = peer(program);
  return found.kind === 'missing' ? found.reason : undefined;
}

function siteWith(program: string, context: TestContext): Site & { readonly path: string } {
  const reason = missing('ip') ?? missing(program);
  const found = peer(program);
  if (reason !== undefined || found.kind === 'missing' || site === undefined) {
    return context.skip(reason ?? 'no network');
  }
  return { ...site, path: found.path };
}

interface Server {
  readonly process: Started;
  /** Lines that it told, of one kind. */
  told(kind: string): object[];
  /** Of the rack, as they stand. */
  faults(): object[];
  leases(): { mac: string; address: string; state: string }[];
}

const probing = { quietMs: 600_000, probeMs: 1_000 };

function reservation(
  leasesPath: string,
  otherServer: { readonly quietMs: number; readonly probeMs: number },
): BootInterface['dhcp'] {
  return {
    mode: 'reservation',
    address: '0.0.0.0',
    port: 67,
    pxeAddress: '0.0.0.0',
    pxePort: 4011,
    clientPort: 68,
    relayPort: 67,
    broadcastAddress: '255.255.255.255',
    subnet: {
      network: '10.77.0.0/24',
      routers: ['10.77.0.254'],
      dnsServers: [serverAddress, '10.77.0.2'],
      domainName: 'rack.example',
      leaseSeconds: 600,
    },
    reservations: [{ mac: asMac(mac.reserved), address: '10.77.0.50' }],
    range: { first: '10.77.0.100', last: '10.77.0.109' },
    declinedMs: 600_000,
    otherServer,
    leasesPath,
  };
}

async function startServer(
  { undo, folder, wire }: Site,
  otherServer: { quietMs: number; probeMs: number } = probing,
): Promise<Server> {
  const leasesPath = join(folder, 'dhcp-leases');
  const logFile = join(folder, 'server.log');
  const config: BootConfig = {
    interfaces: [{ serverAddress, dhcp: reservation(leasesPath, otherServer) }],
    tftp: { address: serverAddress, port: 69 },
    http: { address: serverAddress, port: 8080 },
    loaders: {},
    loaderFiles: [],
    files: ['vmlinuz', 'initrd'].map((name) => ({ name, path: join(folder, name) })),
    runner: {
      kernel: 'vmlinuz',
      initrd: 'initrd',
      agentPort: 7443,
      fingerprint: '00'.repeat(32),
      kernelArguments: [],
    },
  };
  for (const { path } of config.files) writeFileSync(path, 'x');
  writeFileSync(logFile, '');
  const knownMacs = [mac.one, mac.two];
  const main = join(import.meta.dirname, 'address-server/main.ts');
  const process_ = startProcess(undo, {
    name: 'address server',
    file: process.execPath,
    args: [main, JSON.stringify({ config, knownMacs })],
    logFile,
    namespace: wire.namespace,
  });
  const told = (kind: string): object[] =>
    readFileSync(logFile, 'utf8')
      .split('\n')
      .filter((line) => line.startsWith(`{"kind":"${kind}"`))
      .map((line) => JSON.parse(line));
  await until('the start of the server', waitMs, () => told('ready').length > 0, logFile);
  const leases = () =>
    existsSync(leasesPath) ? JSON.parse(readFileSync(leasesPath, 'utf8')).leases : [];
  const faults = (): object[] => {
    const last = told('faults').at(-1) as { faults: object[] } | undefined;
    return last?.faults ?? [];
  };
  return { process: process_, told, faults, leases };
}

async function plugIn({ undo, folder, wire }: Site, name: string, whose: string) {
  return new AddressClient(undo, folder, name, await wire.plug(name, whose));
}

function addressIn(output: string): string | undefined {
  return /bound to ([\d.]+)/.exec(output)?.[1];
}

describe('dhclient', () => {
  test('gets all that the subnet has, and the same address in its next life', async (context) => {
    const here = siteWith('dhclient', context);
    const server = await startServer(here);
    const client = await plugIn(here, 'one', mac.one);
    const address = addressIn(await client.dhclient(here.path));
    expect(address).toMatch(/^10\.77\.0\.10\d$/);
    expect(client.reports('BOUND')).toMatchObject([
      {
        new_ip_address: address,
        new_subnet_mask: '255.255.255.0',
        new_broadcast_address: '10.77.0.255',
        new_routers: '10.77.0.254',
        new_domain_name_servers: '10.77.0.1 10.77.0.2',
        new_domain_name: 'rack.example',
        new_dhcp_lease_time: '600',
        new_dhcp_renewal_time: '300',
        new_dhcp_rebinding_time: '525',
        new_dhcp_server_identifier: serverAddress,
      },
    ]);
    await client.dhclient(here.path, ['-x']);
    // With its file of leases it asks for the address at once; without, for any.
    expect(addressIn(await client.dhclient(here.path))).toBe(address);
    expect(client.reports('REBOOT')).toHaveLength(1);
    await client.dhclient(here.path, ['-x']);
    rmSync(client.leaseFile);
    await server.process.stop();
    await startServer(here);
    expect(addressIn(await client.dhclient(here.path))).toBe(address);
    await client.dhclient(here.path, ['-x']);
  });

  test('renews its lease before the end, and releases it', async (context) => {
    const here = siteWith('dhclient', context);
    const server = await startServer(here);
    const client = await plugIn(here, 'one', mac.one);
    const soon = 'supersede dhcp-renewal-time 2; supersede dhcp-rebinding-time 500;';
    const address = addressIn(await client.dhclient(here.path, [], soon));
    await until('a renewal', waitMs, () => client.reports('RENEW').length > 0);
    expect(client.reports('RENEW')[0]).toMatchObject({ new_ip_address: address });
    const output = await client.dhclient(here.path, ['-r']);
    expect(output).toContain(`DHCPRELEASE of ${address}`);
    const isFree = () => server.leases().some((one) => one.state === 'free');
    await until('the release', waitMs, isFree);
    expect(server.leases()).toMatchObject([{ mac: mac.one, address, state: 'free' }]);
    expect(addressIn(await client.dhclient(here.path))).toBe(address);
    await client.dhclient(here.path, ['-x']);
  });

  test('is refused an address of another network, and asks for one of this', async (context) => {
    const here = siteWith('dhclient', context);
    await startServer(here);
    const client = await plugIn(here, 'one', mac.one);
    const never = 'renew never; rebind never; expire never;';
    const lease = `lease {\n interface "eth0";\n fixed-address 192.0.2.7;\n ${never}\n}\n`;
    writeFileSync(client.leaseFile, lease);
    const output = await client.dhclient(here.path);
    expect(output).toContain('DHCPREQUEST for 192.0.2.7');
    expect(output).toContain('DHCPNAK from 10.77.0.1');
    expect(addressIn(output)).toMatch(/^10\.77\.0\.10\d$/);
    await client.dhclient(here.path, ['-x']);
  });

  test('gets its reservation, and as a stranger nothing', async (context) => {
    const here = siteWith('dhclient', context);
    await startServer(here);
    const client = await plugIn(here, 'bmc', mac.reserved);
    expect(addressIn(await client.dhclient(here.path))).toBe('10.77.0.50');
    await client.dhclient(here.path, ['-x']);
    const stranger = await plugIn(here, 'stranger', mac.stranger);
    const output = await stranger.dhclient(here.path, [], 'timeout 3;');
    expect(output).toContain('No DHCPOFFERS received');
  });
});

test("a client's report that is still being written down is none yet", () => {
  const whole = 'event=bound\nip=10.77.0.100\nserverid=10.77.0.1\n\n';
  const bound = { event: 'bound', ip: '10.77.0.100', serverid: '10.77.0.1' };
  expect(reportsIn('event=bound\n')).toEqual([]);
  expect(reportsIn(`${whole}event=ren`)).toEqual([bound]);
  expect(reportsIn(whole + whole)).toEqual([bound, bound]);
});

describe('udhcpc', () => {
  test('gets an address, renews it when it is told to, and releases it', async (context) => {
    const here = siteWith('busybox', context);
    const server = await startServer(here);
    const client = await plugIn(here, 'one', mac.one);
    const running = client.udhcpc(here.path, ['-R', '-O', 'broadcast']);
    await until('a lease', waitMs, () => client.reports('bound').length > 0, running.logFile);
    const [bound] = client.reports('bound');
    expect(bound).toMatchObject({
      subnet: '255.255.255.0',
      router: '10.77.0.254',
      dns: '10.77.0.1 10.77.0.2',
      domain: 'rack.example',
      lease: '600',
      serverid: serverAddress,
    });
    const address = bound?.['ip'];
    running.signal('SIGUSR1');
    await until('a renewal', waitMs, () => client.reports('renew').length > 0, running.logFile);
    expect(client.reports('renew')[0]).toMatchObject({ ip: address });
    running.signal('SIGUSR2');
    const isFree = () => server.leases().some((one) => one.state === 'free');
    await until('the release', waitMs, isFree, running.logFile);
    expect(server.leases()).toMatchObject([{ mac: mac.one, address, state: 'free' }]);
  });

  test('declines an address that somebody else uses, and gets another', async (context) => {
    const here = siteWith('busybox', context);
    const server = await startServer(here);
    const squatter = await here.wire.plug('squatter', mac.stranger);
    for (let last = 100; last < 105; last += 1) {
      const address = `10.77.0.${last}/24`;
      await runProgram('ip', ['-n', squatter, 'addr', 'add', address, 'dev', 'eth0']);
    }
    // It asks for an address that is taken, so that the conflict is certain.
    const client = await plugIn(here, 'one', mac.one);
    const running = client.udhcpc(here.path, ['-a', '-A', '1', '-r', '10.77.0.102']);
    const isBound = () => client.reports('bound').length > 0;
    await until('a lease', 3 * waitMs, isBound, running.logFile);
    expect(client.reports('bound')[0]?.['ip']).toMatch(/^10\.77\.0\.10[5-9]$/);
    expect(server.told('declined')[0]).toMatchObject({ mac: mac.one, address: '10.77.0.102' });
    const fault = { type: RackFaultType.ADDRESS_DECLINED, mac: mac.one, address: '10.77.0.102' };
    expect(server.faults()).toContainEqual(fault);
  });
});

describe('dnsmasq as another server', () => {
  const foreignServer = { type: RackFaultType.FOREIGN_DHCP_SERVER, mac: '', address: '10.77.0.2' };

  function startOther({ undo, folder }: Site, path: string, namespace: string): Started {
    const logFile = join(folder, 'dnsmasq.log');
    writeFileSync(logFile, '');
    const options = [
      ...['--keep-in-foreground', '--conf-file=/dev/null', '--port=0', '--user=root'],
      ...['--bind-interfaces', '--interface=eth0', '--no-ping', '--log-facility=-', '--log-dhcp'],
      ...['--dhcp-range=10.77.0.200,10.77.0.220,255.255.255.0,1h', '--dhcp-authoritative'],
      ...[`--dhcp-leasefile=${join(folder, 'other.leases')}`, '--pid-file='],
    ];
    return startProcess(undo, { name: 'dnsmasq', file: path, args: options, logFile, namespace });
  }

  test('is found without any client, and hosts then get nothing from us', async (context) => {
    const here = siteWith('dnsmasq', context);
    const dhclient = siteWith('dhclient', context);
    const server = await startServer(here);
    const namespace = await here.wire.plug('other', mac.stranger);
    await runProgram('ip', ['-n', namespace, 'addr', 'add', '10.77.0.2/24', 'dev', 'eth0']);
    const other = startOther(here, here.path, namespace);
    const isFound = () => server.told('otherServer').length > 0;
    await until('the discovery', waitMs, isFound, other.logFile);
    expect(server.told('otherServer')).toMatchObject([{ serverAddress: '10.77.0.2' }]);
    await until('the fault', waitMs, () => server.faults().length > 0);
    expect(server.faults()).toEqual([foreignServer]);
    await other.stop();
    const client = await plugIn(here, 'one', mac.one);
    const output = await client.dhclient(dhclient.path, [], 'timeout 3;');
    expect(output).toContain('No DHCPOFFERS received');
    expect(server.leases()).toEqual([]);
  });

  test('is found by its client’s choice, and we come back when it has gone', async (context) => {
    const here = siteWith('dnsmasq', context);
    const dhclient = siteWith('dhclient', context);
    const server = await startServer(here, { quietMs: 15_000, probeMs: 0 });
    const namespace = await here.wire.plug('other', '52:54:00:77:00:98');
    await runProgram('ip', ['-n', namespace, 'addr', 'add', '10.77.0.2/24', 'dev', 'eth0']);
    const other = startOther(here, here.path, namespace);
    const stranger = await plugIn(here, 'stranger', mac.stranger);
    expect(addressIn(await stranger.dhclient(dhclient.path))).toMatch(/^10\.77\.0\.2\d\d$/);
    await stranger.dhclient(dhclient.path, ['-x']);
    const isFound = () => server.told('otherServer').length > 0;
    await until('the discovery', waitMs, isFound, other.logFile);
    await other.stop();
    const client = await plugIn(here, 'one', mac.one);
    expect(await client.dhclient(dhclient.path, [], 'timeout 2;')).toContain('No DHCPOFFERS');
    const lease = async () => addressIn(await client.dhclient(dhclient.path)) !== undefined;
    await until('the return', 2 * waitMs, lease);
    await client.dhclient(dhclient.path, ['-x']);
    expect(server.told('otherServer')).toHaveLength(1);
    expect(server.told('faults')).toMatchObject([{ faults: [foreignServer] }, { faults: [] }]);
  });
});
