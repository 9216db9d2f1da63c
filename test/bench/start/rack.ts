/** What an agent finds when it starts again: its identity, a rack of hosts and their leases. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { create, toBinary } from '@bufbuild/protobuf';
import { IdentityFiles } from '@rackwright/agent';
import { bundle, programs } from '@rackwright/debian';
import { agent } from '@rackwright/messages';
import { nodeDisk } from '@rackwright/platform/node';
import { macOf } from '../dhcp/client.ts';

const root = join(import.meta.dirname, '../../..');
const dayMs = 86_400_000;

export interface AgentPorts {
  readonly dhcp: number;
  readonly relay: number;
  readonly pxe: number;
  readonly http: number;
  readonly tftp: number;
  readonly runner: number;
}

/** The agent as the package has it; returns its path. */
export function bundledAgent(folder: string): Promise<string> {
  return bundled(folder, programs.agent);
}

/** Bare Node in the same form: Node would take longer to strip its types than to start. */
export function bundledBare(folder: string): Promise<string> {
  const entry = 'test/bench/start/bare.main.ts';
  return bundled(folder, { entry, bundleName: 'bare.mjs', form: 'whole' });
}

async function bundled(
  folder: string,
  { entry, bundleName, form }: { entry: string; bundleName: string; form: 'whole' | 'parts' },
): Promise<string> {
  const { code, chunks } = await bundle(root, entry, '0.0.0-bench', form);
  for (const chunk of chunks) await writeFile(join(folder, chunk.name), chunk.code);
  const path = join(folder, bundleName);
  await writeFile(path, code);
  return path;
}

/** Writes all of it; returns the path of the configuration. Nobody answers as control plane. */
export async function layRack(folder: string, hosts: number, ports: AgentPorts): Promise<string> {
  const stateFolder = join(folder, 'state');
  await mkdir(stateFolder, { mode: 0o700 });
  await layIdentity(stateFolder);
  const snapshot = create(agent.BootSnapshotSchema, {
    generation: 1n,
    hosts: Array.from({ length: hosts }, (_, index) => {
      return { hostUid: `uid-${index}`, hostName: `host-${index}`, macs: [macOf(index)] };
    }),
  });
  const bytes = toBinary(agent.BootSnapshotSchema, snapshot);
  await writeFile(join(stateFolder, 'boot-snapshot'), bytes, { mode: 0o600 });
  const file = join(folder, 'file');
  await writeFile(file, new Uint8Array(1024 * 1024));
  const path = join(folder, 'agent.json');
  await writeFile(path, JSON.stringify(configuration(stateFolder, file, hosts, ports)));
  return path;
}

async function layIdentity(stateFolder: string): Promise<void> {
  const files = new IdentityFiles(nodeDisk(), stateFolder);
  const { privateKeyPem } = await files.key();
  const certificate = join(stateFolder, 'bench.pem');
  const key = join(stateFolder, 'agent-key.pem');
  const args = ['req', '-x509', '-key', key, '-out', certificate, '-subj', '/CN=bench'];
  execFileSync('openssl', [...args, '-days', '30'], { stdio: 'ignore' });
  const certificatePem = await readFile(certificate, 'utf8');
  const nowMs = Date.now();
  await files.save({
    ...{ privateKeyPem, certificatePem, caCertificatePem: certificatePem, rack: 'racks/bench' },
    ...{ enrolmentAddress: '127.0.0.1:9', agentEndpoint: '127.0.0.1:9' },
    ...{ issuedAtMs: nowMs, expiresAtMs: nowMs + 30 * dayMs },
  });
}

function configuration(stateFolder: string, path: string, hosts: number, ports: AgentPorts) {
  const address = '127.0.0.1';
  return {
    ...{ stateFolder, serverAddress: address, log: { level: 'error' } },
    dhcp: {
      ...{ mode: 'reservation', address, port: ports.dhcp },
      ...{ pxeAddress: address, pxePort: ports.pxe },
      ...{ clientPort: ports.relay, relayPort: ports.relay },
      broadcastAddress: '127.255.255.255',
      subnet: { network: '127.0.0.0/16' },
      reservations: Array.from({ length: hosts }, (_, index) => {
        return { mac: macOf(index), address: `127.0.${1 + (index >> 8)}.${index & 0xff}` };
      }),
    },
    tftp: { address, port: ports.tftp },
    http: { address, port: ports.http },
    loaders: { uefiX64: 'snponly.efi' },
    loaderFiles: [{ name: 'snponly.efi', path }],
    files: [
      { name: 'vmlinuz', path },
      { name: 'initrd', path },
    ],
    runner: { address, port: ports.runner },
  };
}
