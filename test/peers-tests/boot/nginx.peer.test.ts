/** Our boot files, and nginx in front of the agent with the site that the agent makes for it. */
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type BootServices, nginxSite, startBoot } from '@rackwright/agent';
import { asMac } from '@rackwright/dhcp';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freeTcpPort, listening } from '../../bench/beside/free-port.ts';
import { type Running, startProgram } from '../../bench/beside/programs.ts';
import { peer } from '../peer.ts';

const nginx = peer('nginx');
const address = '127.0.0.1';
const granted = '52-54-00-77-00-01';
const others = { ungranted: '52-54-00-77-00-02', unknown: '52-54-00-77-00-03' };
const kernel = Buffer.alloc(3_000_000, 'kernel');

let folder: string;
let boot: BootServices;
let front: Running<'nginx'> | undefined;
let filesPort: number;

beforeAll(async () => {
  if (nginx.kind === 'missing') return;
  folder = await mkdtemp(join(tmpdir(), 'rackwright-nginx-'));
  const files = [{ name: 'vmlinuz', path: join(folder, 'a kernel') }];
  await writeFile(join(folder, 'a kernel'), kernel);
  const ports = { port: await freeTcpPort(), filesPort: await freeTcpPort() };
  filesPort = ports.filesPort;
  const http = { address, ...ports };
  boot = await serve(http, files);
  const site = nginxSite({ http, files, loaderFiles: [] });
  const args = ['-c', await writeConfig(site), '-p', folder, '-e', 'stderr'];
  front = startProgram({ name: 'nginx', program: nginx.path, args });
  await listening(filesPort);
});

afterAll(async () => {
  if (nginx.kind === 'missing') return;
  await front?.stop();
  await boot.close();
  await rm(folder, { recursive: true });
});

/** The site as a machine's nginx includes it. */
async function writeConfig(site: string): Promise<string> {
  const kept = join(folder, 'nginx');
  await mkdir(kept);
  await writeFile(join(folder, 'site.conf'), site);
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const lines = [
    `daemon off; worker_processes 1; pid ${kept}/pid; error_log /dev/null;`,
    ...(process.getuid?.() === 0 ? ['user root;'] : []),
    'events { worker_connections 64; }',
    `http { access_log off; ${kinds.map((kind) => `${kind}_temp_path ${kept}/${kind};`).join(' ')}`,
    `include ${folder}/site.conf; }`,
  ];
  const path = join(folder, 'nginx.conf');
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

function serve(
  http: { readonly address: string; readonly port: number; readonly filesPort: number },
  files: readonly { readonly name: string; readonly path: string }[],
): Promise<BootServices> {
  const hosts = [granted, others.ungranted].map((mac, at) => {
    const macs = [asMac(mac.replaceAll('-', ':'))];
    return { hostUid: `u${at}`, hostName: `host-${at}`, macs };
  });
  const window = { openedAtMs: 0, expiresAtMs: Number.MAX_SAFE_INTEGER };
  const grants = [{ hostUid: 'u0', operationId: 'u0/1', bootToken: 'token', ...window }];
  const fingerprint = '00'.repeat(32);
  const names = { kernel: 'vmlinuz', initrd: 'vmlinuz' };
  return startBoot(
    {
      interfaces: [{ serverAddress: address, dhcp: { mode: 'off' } }],
      tftp: { address, port: 0 },
      ...{ http, loaders: {}, loaderFiles: [], files },
      runner: { ...names, agentPort: 7443, fingerprint, kernelArguments: [] },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk() },
      ...{ clock: nodeClock(), log: nodeLog('error'), onNetboot: () => {} },
      memory: () => ({ snapshot: { generation: 1, hosts }, grants }),
    },
  );
}

interface Answer {
  readonly status: number;
  readonly server: string;
  readonly bytes: Buffer;
}

/** The target goes out as it stands here. */
async function get(
  port: number,
  path: string,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const sent = request({ host: address, port, path, headers, agent: false }).end();
  const [response] = (await once(sent, 'response')) as [IncomingMessage];
  const bytes = Buffer.concat(await response.toArray());
  const server = String(response.headers['server'] ?? '');
  return { status: response.statusCode ?? 0, server, bytes };
}

test('a host gets its script of the agent, and its kernel of nginx', async (context) => {
  if (nginx.kind === 'missing') return context.skip(nginx.reason);
  const script = await get(boot.httpPort, `/boot/${granted}/script.ipxe`);
  expect([script.status, script.server]).toEqual([200, '']);
  const url = new URL(/http:\S+\/files\/vmlinuz/.exec(script.bytes.toString())?.[0] ?? '');
  expect(url.port).toBe(String(filesPort));
  const file = await get(filesPort, url.pathname);
  expect([file.status, file.server]).toEqual([200, 'nginx']);
  expect(Buffer.compare(file.bytes, kernel)).toBe(0);
  const part = await get(filesPort, url.pathname, { range: 'bytes=10-29' });
  expect([part.status, part.bytes.toString()]).toEqual([206, kernel.toString('latin1', 10, 30)]);
});

test.for([
  [others.ungranted, 'vmlinuz', 403],
  [others.unknown, 'vmlinuz', 403],
  ['nonsense', 'vmlinuz', 403],
  // nginx reads these as the kernel of the host that has a grant; the agent does not.
  [granted, '%76mlinuz', 403],
  [granted, 'x/../vmlinuz', 403],
  [granted, '../files/vmlinuz', 403],
  [`${others.ungranted}/../${granted}`, 'vmlinuz', 403],
  [granted, 'initrd', 404],
] as const)('nginx refuses %s the file %s', async ([mac, name, status], context) => {
  if (nginx.kind === 'missing') return context.skip(nginx.reason);
  const answer = await get(filesPort, `/boot/${mac}/files/${name}`);
  expect(answer.status).toBe(status);
  expect(answer.bytes.includes('kernelkernel')).toBe(false);
});

test.for([
  ['/rackwright-leave', 403],
  ['/files/vmlinuz', 404],
  [`/boot/${granted}/script.ipxe`, 404],
  ['/a%20kernel', 404],
] as const)('nginx serves nothing at %s', async ([target, status], context) => {
  if (nginx.kind === 'missing') return context.skip(nginx.reason);
  expect((await get(filesPort, target)).status).toBe(status);
});

test('nginx sends nothing while the agent is away', async (context) => {
  if (nginx.kind === 'missing') return context.skip(nginx.reason);
  await boot.close();
  const answer = await get(filesPort, `/boot/${granted}/files/vmlinuz`);
  expect(answer.status).toBe(500);
  expect(answer.bytes.length).toBeLessThan(1_000);
});
