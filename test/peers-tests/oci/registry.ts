/** Debian's docker-registry on loopback, and images that skopeo pushes to it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { hexOf } from '@rackwright/oci';
import type { WrittenImage } from '@rackwright/oci/testing';
import { freePorts } from '@rackwright/sim/loopback';
import { runPeer } from '../peer.ts';

export const credential = { username: 'robot', password: 'sesame' };
/** bcrypt of that password, as htpasswd writes it. */
const passwordLine = 'robot:$2y$05$abcdefghijklmnopqrstuuKcS.CYWVYVaLiiCKrrc0A5s3mGesJ9O\n';
const startWaitMs = 15_000;
const pollMs = 50;

export interface Registry {
  /** "127.0.0.1:PORT" */
  readonly name: string;
  /** Where it keeps a blob. */
  blobFile(hex: string): string;
  /** Everything that it has logged, accesses included. */
  log(): string;
  close(): Promise<void>;
}

/** With a password, it asks everybody for it. */
export async function startRegistry(path: string, hasPassword: boolean): Promise<Registry> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-registry-'));
  const [port = 0] = await freePorts(1);
  const name = `127.0.0.1:${port}`;
  const auth = { htpasswd: { realm: 'a realm', path: join(folder, 'htpasswd') } };
  await writeFile(join(folder, 'htpasswd'), passwordLine);
  // JSON is YAML.
  const config = {
    version: 0.1,
    log: { accesslog: { disabled: false } },
    storage: { filesystem: { rootdirectory: join(folder, 'storage') } },
    http: { addr: name },
    ...(hasPassword ? { auth } : {}),
  };
  await writeFile(join(folder, 'config.yml'), JSON.stringify(config));
  const child = spawn(path, ['serve', join(folder, 'config.yml')], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { PATH: process.env['PATH'], OTEL_TRACES_EXPORTER: 'none' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (part: Buffer) => {
      output += part.toString();
    });
  }
  await untilAnswers(name, child, () => output);
  return {
    name,
    blobFile: (hex) =>
      join(folder, 'storage/docker/registry/v2/blobs/sha256', hex.slice(0, 2), hex, 'data'),
    log: () => output,
    close: async () => {
      child.kill('SIGKILL');
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function untilAnswers(name: string, child: ChildProcess, log: () => string): Promise<void> {
  for (const endMs = Date.now() + startWaitMs; Date.now() < endMs; await sleep(pollMs)) {
    if (child.exitCode !== null) break;
    const answer = await fetch(`http://${name}/v2/`).catch(() => undefined);
    if (answer !== undefined) return;
  }
  throw new Error(`docker-registry does not come up: ${log()}`);
}

/** Pushes an image as skopeo does, its digests untouched. */
export async function push(
  skopeo: string,
  registry: Registry,
  repository: string,
  image: WrittenImage,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'rackwright-layout-'));
  try {
    await mkdir(join(folder, 'blobs/sha256'), { recursive: true });
    await writeFile(join(folder, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
    for (const [digest, bytes] of image.blobs) {
      await writeFile(join(folder, 'blobs/sha256', hexOf(digest)), bytes);
    }
    const manifest = {
      mediaType: 'application/vnd.oci.image.manifest.v1+json',
      digest: image.manifest,
      size: image.blobs.get(image.manifest)?.length,
      annotations: { 'org.opencontainers.image.ref.name': 'pushed' },
    };
    await writeFile(
      join(folder, 'index.json'),
      JSON.stringify({ schemaVersion: 2, manifests: [manifest] }),
    );
    const { code, output } = await runPeer(skopeo, [
      ...['--insecure-policy', 'copy', '--preserve-digests', '--dest-tls-verify=false'],
      `--dest-creds=${credential.username}:${credential.password}`,
      ...[`oci:${folder}:pushed`, `docker://${registry.name}/${repository}:pushed`],
    ]);
    if (code !== 0) throw new Error(`skopeo: ${output}`);
  } finally {
    await rm(folder, { recursive: true });
  }
}
