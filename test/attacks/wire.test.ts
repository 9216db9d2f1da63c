/**
 * Who stands on the provisioning network and takes all that is to be had there in plain: what DHCP
 * says to anybody, and what TFTP and HTTP give to whoever asks, while a host is wiped and after it.
 */
import { createPrivateKey } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { HostState } from '@rackwright/messages';
import { fetchByTftp } from '@rackwright/sim/firmware';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { MachinePlan } from '../e2e/machines.ts';
import { eventually, Rack } from '../e2e/rack.ts';
import { SecretSearch } from '../e2e/secrets-search.ts';

const timeout = 600_000;
const machine: MachinePlan = {
  name: 'h1',
  bmcAddress: '127.0.0.21',
  mac: '52:54:00:00:00:01',
  uuid: '0102030405060708090a0b0c0d0e0f10',
  serial: 'SN-1',
  disks: [{ name: 'vda', serial: 'DISK-1', kind: 'discard' }],
};
const bmcPassword = '+/&password of BMCs';

interface AgentFile {
  readonly dhcp: { readonly port: number; readonly clientPort: number; readonly address: string };
  readonly tftp: { readonly port: number };
  readonly http: { readonly port: number };
}

let rack: Rack;
const listeners: Socket[] = [];
/** All that came or was heard, by where. */
const taken: { readonly where: string; readonly bytes: Uint8Array }[] = [];

beforeAll(async () => {
  rack = await Rack.start({ machines: [machine], bmcPassword });
  const { dhcp } = agentFile();
  for (const port of [dhcp.port, dhcp.clientPort]) await listen(dhcp.address, port);
}, timeout);

afterAll(async () => {
  for (const each of listeners) each.close();
  await rack.stop();
});

function agentFile(): AgentFile {
  return JSON.parse(readFileSync(join(rack.folder, 'agent.json'), 'utf8')) as AgentFile;
}

/** Broadcasts are for everybody. */
async function listen(address: string, port: number): Promise<void> {
  const socket = createSocket({ type: 'udp4', reuseAddr: true });
  socket.on('message', (bytes) => taken.push({ where: `DHCP on ${port}`, bytes }));
  socket.bind(port, address);
  await once(socket, 'listening');
  listeners.push(socket);
}

async function get(path: string): Promise<string> {
  const { http } = agentFile();
  const response = await fetch(`http://127.0.0.1:${http.port}${path}`);
  const bytes = await response.bytes();
  const head = JSON.stringify([response.status, [...response.headers]]);
  taken.push({ where: `HTTP ${path}`, bytes }, { where: `HTTP ${path}`, bytes: Buffer.from(head) });
  return Buffer.from(bytes).toString('latin1');
}

/** Everything that the boot path has for a MAC, or for nobody, and what it might have. */
async function takeAll(): Promise<void> {
  const names = ['undionly.kpxe', 'snponly.efi', 'vmlinuz', 'initrd'];
  const guesses = ['agent.json', 'identity.json', 'journal', 'boot-snapshot', 'gateway.json'];
  for (const name of [...names, ...guesses]) {
    await get(`/files/${name}`);
    await get(`/boot/${machine.mac}/files/${name}`);
  }
  const others = ['/', '/boot', `/boot/${machine.mac}`, '/files', '/v2/', '/metrics', '/healthz'];
  for (const path of [`/boot/${machine.mac}/script.ipxe`, ...others]) await get(path);
  const mac = machine.mac.replaceAll(':', '-');
  for (const fileName of names.flatMap((name) => [name, `${mac}/${name}`])) {
    const port = agentFile().tftp.port;
    const from = { address: '127.0.0.1', server: '127.0.0.1', port, windowBlocks: 1 };
    const bytes = await fetchByTftp({ ...from, fileName }).catch((error: unknown) =>
      Buffer.from(String(error)),
    );
    taken.push({ where: `TFTP ${fileName}`, bytes });
  }
}

/** The private half of every key that agent and control plane keep in files, by where it lies. */
function privateKeys(): Record<string, Uint8Array> {
  const keys: Record<string, Uint8Array> = {};
  for (const folder of ['agent', 'controlplane']) {
    const root = join(rack.folder, folder);
    for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' })) {
      const path = join(root, name);
      if (!statSync(path).isFile()) continue;
      // PEM stands in JSON, too.
      const text = readFileSync(path, 'latin1').replaceAll('\\n', '\n');
      for (const [pem] of text.matchAll(
        /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g,
      )) {
        const { d } = createPrivateKey(pem).export({ format: 'jwk' });
        keys[`${folder}/${name}`] = Buffer.from(d ?? '', 'base64url');
      }
    }
  }
  return keys;
}

test('no answer of the boot path holds a secret except the token of the boot', {
  timeout,
}, async () => {
  const script = `/boot/${machine.mac}/script.ipxe`;
  const bootToken = await eventually('a boot grant', async () => {
    const token = /rackwright\.token=(\S+)/.exec(await get(script))?.[1];
    if (token === undefined) throw new Error('no token');
    return token;
  });
  await takeAll();
  await rack.untilHost('h1', 'available', ({ status }) => {
    return status?.state === HostState.AVAILABLE;
  });
  const tokenAfter = /rackwright\.token=(\S+)/.exec(await get(script))?.[1];
  await takeAll();

  const identity = join(rack.folder, 'controlplane/identity');
  const keys = privateKeys();
  expect(
    Object.keys(keys).length,
    'agent, its runners’ door, control plane',
  ).toBeGreaterThanOrEqual(3);
  const search = new SecretSearch({
    ...keys,
    bmcPassword,
    adminToken: readFileSync(join(identity, 'admin.token'), 'utf8').trim(),
  });
  const tokens = new SecretSearch({ bootToken });
  for (const { where, bytes } of taken) {
    search.bytes(where, bytes);
    tokens.bytes(where, bytes);
  }
  expect(taken.some(({ where }) => where.startsWith('DHCP'))).toBe(true);
  expect(taken.filter(({ where }) => where.startsWith('TFTP')).length).toBeGreaterThan(10);
  expect(search.findings).toEqual([]);
  // The search finds what is there, and the token stands in the script and nowhere else.
  const places = new Set(tokens.findings.map(({ where }) => where));
  expect([...places]).toEqual([`HTTP ${script}`]);
  expect(tokenAfter, 'the boot that is over is given to nobody').toBeUndefined();
});
