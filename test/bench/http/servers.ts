/** The HTTP servers that are compared: ours, what Node costs anyway, and nginx. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { startBoot } from '@rackwright/agent';
import { nodeClock, nodeDisk, nodeHttp, nodeLog, nodeUdp } from '@rackwright/platform/node';
import { freeTcpPort } from '../beside/free-port.ts';
import { programOf, type Running, startProgram } from '../beside/programs.ts';
import { installedArguments } from '../installed.ts';

export type ServerName = 'rackwright' | 'bare Node' | 'nginx';

export interface HttpServer extends Running<ServerName> {
  readonly port: number;
  readonly target: string;
}

/** Starts all that are there; each serves the file of this name in the folder. */
export async function startServers(folder: string, name: string): Promise<HttpServer[]> {
  const path = join(folder, name);
  const main = join(import.meta.dirname, 'main.ts');
  const ports = [await freeTcpPort(), await freeTcpPort(), await freeTcpPort()] as const;
  const node = { program: process.execPath };
  const bare = join(import.meta.dirname, './bare.main.ts');
  const own = installedArguments('agent');
  const programs = [
    { ...node, name: 'rackwright', args: [...own, main, 'serve', path, String(ports[0])] },
    { ...node, name: 'bare Node', args: [...own, bare, path, String(ports[1])] },
    {
      name: 'nginx',
      program: programOf('nginx'),
      args: ['-c', await nginxConfig(folder, ports[2]), '-p', folder, '-e', 'stderr'],
    },
  ] as const;
  const started: HttpServer[] = [];
  for (const [index, one] of programs.entries()) {
    const running = startProgram<ServerName>(one);
    if (running === undefined) continue;
    const target = one.name === 'rackwright' ? `/files/${name}` : `/${name}`;
    started.push({ ...running, port: ports[index] ?? 0, target });
  }
  return started;
}

/** One worker, and files as its own documentation advises to send them. */
async function nginxConfig(folder: string, port: number): Promise<string> {
  const path = join(folder, 'nginx.conf');
  const kept = join(folder, 'nginx');
  await mkdir(kept, { recursive: true });
  const kinds = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const lines = [
    `daemon off; worker_processes 1; pid ${kept}/pid; error_log stderr; user root;`,
    'events { worker_connections 1024; }',
    'http {',
    '  access_log off; sendfile on; tcp_nopush on; default_type application/octet-stream;',
    ...kinds.map((kind) => `  ${kind}_temp_path ${kept}/${kind};`),
    `  server { listen 127.0.0.1:${port}; root ${folder}; }`,
    '}',
  ];
  await writeFile(path, `${lines.join('\n')}\n`);
  return path;
}

/** Our server: the agent's boot path with everything that it refuses and bounds. */
export async function serve(path: string, port: number): Promise<void> {
  const name = path.split('/').at(-1) ?? '';
  await startBoot(
    {
      interfaces: [{ serverAddress: '127.0.0.1', dhcp: { mode: 'off' } }],
      tftp: { address: '127.0.0.1', port: 0 },
      http: { address: '127.0.0.1', port },
      loaders: {},
      loaderFiles: [],
      files: [{ name, path }],
      runner: {
        ...{ kernel: name, initrd: name, agentPort: 7443, kernelArguments: [] },
        fingerprint: '00'.repeat(32),
      },
    },
    {
      ...{ udp: nodeUdp(), http: nodeHttp(), disk: nodeDisk() },
      ...{ clock: nodeClock(), log: nodeLog('error') },
      memory: () => ({ snapshot: { generation: 1, hosts: [] }, grants: [] }),
      onNetboot: () => {},
    },
  );
}
