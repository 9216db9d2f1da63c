/**
 * rackwright image push: an image of hosts from files of this machine into a registry.
 *
 * Must not: take a password as an argument, where others can read it.
 */
import { sizeText } from '@rackwright/disk-image/size';
import {
  type Architecture,
  type Digest,
  type DiskCompression,
  declaredBy,
  digestOf,
  diskCompressions,
  diskFormats,
  emptyConfig,
  isOciError,
  manifestMediaType,
  type OciDiskFormat,
  parseReference,
  type RegistryAccess,
  RegistryPublisher,
  RunningDigest,
  type WrittenLayer,
  writeHostManifest,
} from '@rackwright/oci';
import { errorText } from '@rackwright/platform';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { NotPushed, UsageError } from '../../failure.ts';
import { outputFlag, textFlag } from '../../flags.ts';
import type { OutputKind } from '../../output/kinds.ts';
import { isForPrograms, printLines, printValue } from '../../output/show.ts';

interface PushFlags {
  readonly output: OutputKind;
  readonly format?: OciDiskFormat;
  readonly compression?: DiskCompression;
  readonly architecture: Architecture;
  readonly version?: string;
  readonly kernel?: string;
  readonly initrd?: readonly string[];
  readonly kernelArguments?: string;
  readonly username?: string;
  readonly passwordFile?: string;
  readonly plainHttp: boolean;
  readonly authority?: string;
  readonly tokenService?: string;
}

const passwordVariable = 'RACKWRIGHT_REGISTRY_PASSWORD';

export const pushImage = buildCommand({
  docs: {
    brief: 'Push a disk, or a kernel with its initrd, to a registry as an image of hosts',
    fullDescription:
      'Push a disk, or a kernel with its initrd, to a registry as an image of hosts, and print ' +
      'its digest. FILE is the disk, or none for an image that is only booted over the network. ' +
      'The name of the file says its format and compression, unless flags do. This machine talks ' +
      'to the registry, with --username and the password in ' +
      `${passwordVariable} or in --password-file. The control plane is not asked.`,
  },
  parameters: {
    flags: {
      ...outputFlag,
      format: { kind: 'enum', values: diskFormats, optional: true, brief: 'Format of the disk' },
      compression: {
        kind: 'enum',
        values: diskCompressions,
        optional: true,
        brief: 'How the file is compressed',
      },
      architecture: {
        kind: 'enum',
        values: ['amd64', 'arm64'],
        default: 'amd64',
        brief: 'Architecture of the machines',
      },
      version: textFlag('A version that pools and histories show', 'version'),
      kernel: textFlag('Kernel, for hosts that boot over the network', 'file'),
      initrd: { ...textFlag('Its initrd; may be repeated', 'file'), variadic: true },
      kernelArguments: textFlag('Its command line', 'text'),
      username: textFlag('Name at the registry', 'name'),
      passwordFile: textFlag('File with the password', 'file'),
      plainHttp: { kind: 'boolean', default: false, withNegated: false, brief: 'Without TLS' },
      authority: textFlag('File with the registry’s own authorities (PEM)', 'file'),
      tokenService: textFlag('Host of its token service, to be shown the password too', 'host'),
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, brief: 'The disk, or none', placeholder: 'file' },
        { parse: String, brief: 'REGISTRY/REPOSITORY:TAG', placeholder: 'reference' },
      ],
    },
    aliases: { o: 'output' },
  },
  async func(this: CliContext, flags: PushFlags, file: string, reference: string) {
    const { io } = this;
    const { registry, repository, tag } = target(reference);
    const layers = await layersOf(io, flags, file);
    const access = await accessTo(io, flags, registry);
    try {
      const digest = await push(io, access, { repository, tag, layers, flags });
      const named = `${registry}/${repository}@${digest}`;
      if (isForPrograms(flags.output) && flags.output !== 'name') {
        printValue(io, flags.output, { image: named, digest, tag });
      } else printLines(io, [named]);
    } catch (error) {
      if (isOciError(error)) throw new NotPushed(error);
      throw error;
    }
  },
});

function target(given: string) {
  const read = parseReference(given);
  if (read.kind === 'bad') throw new UsageError(`the reference "${given}" ${read.problem}`);
  const { registry, repository, tag, digest } = read.reference;
  if (tag !== undefined && digest === undefined) return { registry, repository, tag };
  throw new UsageError(`the reference "${given}" must name a tag, as REGISTRY/REPOSITORY:TAG`);
}

/** A file that is to be a layer. */
interface LayerFile extends WrittenLayer {
  readonly path: string;
}

async function layersOf(io: CommandIo, flags: PushFlags, disk: string): Promise<LayerFile[]> {
  const { kernel, initrd = [], kernelArguments } = flags;
  if (disk === 'none' && kernel === undefined) {
    throw new UsageError('there is nothing to push: name a disk, or --kernel');
  }
  if (kernel === undefined && (initrd.length > 0 || kernelArguments !== undefined)) {
    throw new UsageError('--initrd and --kernel-arguments need --kernel');
  }
  const layers: LayerFile[] = [];
  if (disk !== 'none') layers.push(await diskLayer(io, flags, disk));
  if (kernel !== undefined) {
    const read = await readWhole(io, kernel);
    const given = kernelArguments === undefined ? {} : { kernelArguments };
    layers.push({ ...read, ...given, role: { role: 'kernel' } });
  }
  for (const path of initrd) {
    layers.push({ ...(await readWhole(io, path)), role: { role: 'initrd' } });
  }
  return layers;
}

async function diskLayer(io: CommandIo, flags: PushFlags, path: string): Promise<LayerFile> {
  const declared = { ...declaredBy(nameOf(path), ''), ...pickGiven(flags) };
  const { format = 'raw', compression = 'none' } = declared;
  const read = await readWhole(io, path);
  const content = format === 'raw' ? await contentOf(io, path, compression, read) : {};
  return { ...read, ...content, role: { role: 'disk', format, compression } };
}

function pickGiven({ format, compression }: PushFlags) {
  return {
    ...(format === undefined ? {} : { format }),
    ...(compression === undefined ? {} : { compression }),
  };
}

/** Its decompressed content; nothing for xz, which only the hosts' runner reads. */
async function contentOf(
  io: CommandIo,
  path: string,
  compression: DiskCompression,
  { digest, sizeBytes }: Pick<LayerFile, 'digest' | 'sizeBytes'>,
): Promise<{ contentBytes?: number; contentDigest?: Digest }> {
  if (compression === 'none') return { contentBytes: sizeBytes, contentDigest: digest };
  if (compression === 'xz') return {};
  // Only this command needs it, and it brings much with it.
  const { gathered, pieceMemory, unpack } = await import('@rackwright/disk-image');
  const never = new AbortController().signal;
  const refuse = () => {
    throw new UsageError('xz is not unpacked here');
  };
  try {
    const packed = gathered(chunksOf(io, path), pieceMemory());
    const content = await hashed(unpack(compression, packed, refuse, never));
    return { contentBytes: content.sizeBytes, contentDigest: content.digest };
  } catch (error) {
    const text = errorText(error);
    const right = 'say what it is by --compression';
    throw new UsageError(`${path} is no ${compression} file: ${text}; ${right}`, { cause: error });
  }
}

async function readWhole(io: CommandIo, path: string): Promise<Omit<LayerFile, 'role'>> {
  io.err.write(`reads ${path}\n`);
  try {
    return { path, title: nameOf(path), ...(await hashed(chunksOf(io, path))) };
  } catch (error) {
    const text = errorText(error);
    throw new UsageError(`${path} cannot be read: ${text}`, { cause: error });
  }
}

async function hashed(
  chunks: AsyncIterable<Uint8Array>,
): Promise<{ digest: Digest; sizeBytes: number }> {
  const running = new RunningDigest();
  let sizeBytes = 0;
  for await (const chunk of chunks) {
    running.update(chunk);
    sizeBytes += chunk.length;
  }
  return { digest: running.digest(), sizeBytes };
}

function chunksOf({ readPieces }: CommandIo, path: string): AsyncIterable<Uint8Array> {
  if (readPieces === undefined) throw new UsageError('no large files can be read here');
  return readPieces(path);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

async function accessTo(
  io: CommandIo,
  { username, passwordFile, plainHttp, authority, tokenService }: PushFlags,
  registry: string,
): Promise<RegistryAccess> {
  const password = await passwordOf(io, passwordFile);
  if ((username === undefined) !== (password === undefined)) {
    throw new UsageError(`give --username and a password (${passwordVariable}, --password-file)`);
  }
  const isKnown = username !== undefined && password !== undefined;
  return {
    ...{ registry, plainHttp },
    credential: isKnown ? { username, password } : undefined,
    ...(authority === undefined ? {} : { caPem: await fileText(io, authority) }),
    ...(tokenService === undefined ? {} : { tokenService }),
  };
}

async function passwordOf(io: CommandIo, file: string | undefined): Promise<string | undefined> {
  if (file !== undefined) return (await fileText(io, file)).replace(/\r?\n$/, '');
  return io.environment[passwordVariable];
}

async function fileText(io: CommandIo, path: string): Promise<string> {
  const bytes = await io.readFile(path);
  if (bytes === undefined) throw new UsageError(`there is no file ${path}`);
  return new TextDecoder().decode(bytes);
}

interface ImagePush {
  readonly repository: string;
  readonly tag: string;
  readonly layers: readonly LayerFile[];
  readonly flags: PushFlags;
}

async function push(
  io: CommandIo,
  access: RegistryAccess,
  { repository, tag, layers, flags }: ImagePush,
): Promise<Digest> {
  if (io.web === undefined) throw new UsageError('no registry can be reached from here');
  const publisher = new RegistryPublisher(io.web, access);
  const { signal } = io;
  const config = { repository, digest: digestOf(emptyConfig), sizeBytes: emptyConfig.length };
  await publisher.blob({ ...config, signal }, once(emptyConfig));
  for (const { path, digest, sizeBytes } of layers) {
    io.err.write(`pushes ${path}, ${sizeText(BigInt(sizeBytes))}\n`);
    await publisher.blob({ repository, digest, sizeBytes, signal }, chunksOf(io, path));
  }
  const { version, architecture } = flags;
  const named = version === undefined ? {} : { version };
  const manifest = writeHostManifest({ layers, architecture, ...named });
  return publisher.manifest(repository, manifest, manifestMediaType, tag, signal);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}
