/**
 * A registry that nobody here wrote: Debian's docker-registry beside the site's DHCP server, with a
 * certificate of an authority of its own and a password; filled by skopeo.
 */
import { mkdirSync } from 'node:fs';
import { copyFile, link, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  type Digest,
  digestOf,
  emptyConfig,
  hexOf,
  indexMediaType,
  type WrittenLayer,
  writeHostIndex,
  writeHostManifest,
} from '@rackwright/oci';
import type { Lab } from '../lab.ts';
import { LAB_ADDRESS } from '../netns.ts';
import { runProgram, type Started, startProcess, until } from '../processes.ts';
import type { DigestedFile, LabImage, LabNetbootImage, LabQcow2 } from './build.ts';

/** What can be published. */
export type PushedImage = LabImage | LabQcow2 | LabNetbootImage;

const PORT = 5000;
const START_WAIT_MS = 60_000;
const USER = 'robot';
const PASSWORD = 'sesame';
/** bcrypt of that password, as htpasswd writes it. */
const PASSWORD_LINE = 'robot:$2y$05$abcdefghijklmnopqrstuuKcS.CYWVYVaLiiCKrrc0A5s3mGesJ9O\n';
const REPOSITORY = 'os/debian';

/** A running registry. */
export interface LabRegistry {
  /** "HOST:PORT", as references name it. */
  readonly name: string;
  /** "HOST:PORT/REPOSITORY", where images are pushed to. */
  readonly repository: string;
  readonly user: string;
  readonly password: string;
  /** File with the certificate of its authority. */
  readonly authority: string;
  readonly program: Started;
  /** Pushes an image under a tag; answers the digest that the tag stands for from then on. */
  push(image: PushedImage, tag: string): Promise<Digest>;
}

/** Starts it, empty. */
export async function startRegistry(lab: Lab): Promise<LabRegistry> {
  const folder = join(lab.folder, 'registry');
  mkdirSync(join(folder, 'authority'), { recursive: true });
  const name = `${LAB_ADDRESS.site}:${PORT}`;
  const authority = join(folder, 'authority/ca.crt');
  const tls = await makeCertificate(folder, authority);
  await writeFile(join(folder, 'htpasswd'), PASSWORD_LINE);
  const config = {
    version: 0.1,
    log: { accesslog: { disabled: false } },
    storage: { filesystem: { rootdirectory: join(folder, 'storage') } },
    http: { addr: name, tls },
    auth: { htpasswd: { realm: 'the lab', path: join(folder, 'htpasswd') } },
  };
  await writeFile(join(folder, 'config.yml'), JSON.stringify(config)); // JSON is YAML
  const program = startProcess(lab.undo, {
    name: 'docker-registry',
    file: 'docker-registry',
    args: ['serve', join(folder, 'config.yml')],
    logFile: join(lab.folder, 'registry.log'),
    namespace: lab.network.siteNamespace,
    environment: { OTEL_TRACES_EXPORTER: 'none' },
  });
  const { namespace } = lab.network;
  const ask = ['--silent', '--cacert', authority, '--user', `${USER}:${PASSWORD}`, '--fail'];
  const answers = () =>
    runProgram('curl', [...ask, `https://${name}/v2/`], { namespace }).then(
      () => true,
      () => false,
    );
  await until('the start of the registry', START_WAIT_MS, answers, program.logFile);
  const repository = `${name}/${REPOSITORY}`;
  return {
    ...{ name, repository, user: USER, password: PASSWORD, authority, program },
    push: (image, tag) => push({ lab, folder, repository }, image, tag),
  };
}

/** An authority, and a certificate of it for the registry's address. */
async function makeCertificate(folder: string, authority: string) {
  const [authorityKey, key] = [join(folder, 'authority.key'), join(folder, 'registry.key')];
  const [request, certificate] = [join(folder, 'registry.csr'), join(folder, 'registry.crt')];
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];
  const self = ['req', '-x509', ...curve, '-keyout', authorityKey, '-out', authority];
  await runProgram('openssl', [...self, '-days', '2', '-subj', '/CN=authority of the lab']);
  const asked = ['req', ...curve, '-keyout', key, '-out', request, '-subj', '/CN=registry'];
  await runProgram('openssl', asked);
  await writeFile(join(folder, 'names'), `subjectAltName=IP:${LAB_ADDRESS.site}\n`);
  await runProgram('openssl', [
    ...['x509', '-req', '-in', request, '-CA', authority, '-CAkey', authorityKey],
    ...['-CAcreateserial', '-days', '2', '-extfile', join(folder, 'names'), '-out', certificate],
  ]);
  return { certificate, key };
}

interface Place {
  readonly lab: Lab;
  readonly folder: string;
  readonly repository: string;
}

/** As an OCI layout on disk, copied by skopeo with its digests as they are. */
async function push(place: Place, image: PushedImage, tag: string): Promise<Digest> {
  const { lab, folder, repository } = place;
  const layout = join(folder, `layout-${image.version}-${tag}`);
  const blobs = join(layout, 'blobs/sha256');
  mkdirSync(blobs, { recursive: true });
  const keep = async (bytes: Uint8Array): Promise<Digest> => {
    const digest = digestOf(bytes);
    await writeFile(join(blobs, hexOf(digest)), bytes);
    return digest;
  };
  const layers = layersOf(image);
  for (const { digest, path } of layers) {
    const blob = join(blobs, hexOf(digest));
    await link(path, blob).catch(() => copyFile(path, blob));
  }
  await keep(emptyConfig);
  const manifest = writeHostManifest({ layers, version: image.version, architecture: 'amd64' });
  const child = { digest: await keep(manifest), sizeBytes: manifest.length };
  const index = writeHostIndex([{ ...child, architecture: 'amd64' }]);
  const digest = await keep(index);
  const named = {
    ...{ mediaType: indexMediaType, digest, size: index.length },
    annotations: { 'org.opencontainers.image.ref.name': tag },
  };
  await writeFile(join(layout, 'oci-layout'), '{"imageLayoutVersion":"1.0.0"}');
  await writeFile(
    join(layout, 'index.json'),
    JSON.stringify({ schemaVersion: 2, mediaType: indexMediaType, manifests: [named] }),
  );
  await runProgram(
    'skopeo',
    [
      ...['--insecure-policy', 'copy', '--all', '--preserve-digests'],
      ...[`--dest-cert-dir=${join(folder, 'authority')}`, `--dest-creds=${USER}:${PASSWORD}`],
      ...[`oci:${layout}:${tag}`, `docker://${repository}:${tag}`],
    ],
    { namespace: lab.network.namespace },
  );
  await rm(layout, { recursive: true });
  return digest;
}

interface FileLayer extends WrittenLayer {
  readonly path: string;
}

function layersOf(image: PushedImage): readonly FileLayer[] {
  if ('kernel' in image) {
    const { kernel, initrd, kernelArguments } = image;
    return [
      { ...layerOf(kernel, 'vmlinuz'), role: { role: 'kernel' }, kernelArguments },
      { ...layerOf(initrd, 'root.cpio.zst'), role: { role: 'initrd' } },
    ];
  }
  const { digest: contentDigest, bytes: contentBytes } = image.disk;
  const content = { contentDigest, contentBytes };
  if ('qcow2' in image) {
    const role = { role: 'disk', format: 'qcow2', compression: 'none' } as const;
    return [{ ...layerOf(image.qcow2, 'debian.qcow2'), role, ...content }];
  }
  const role = { role: 'disk', format: 'raw', compression: 'zstd' } as const;
  return [{ ...layerOf(image.packed, 'debian.raw.zst'), role, ...content }];
}

function layerOf({ path, bytes, digest }: DigestedFile, title: string) {
  return { path, digest, sizeBytes: bytes, title };
}
