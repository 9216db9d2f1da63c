/**
 * The image of a command as the agent serves it: the layers to unpack, and the program to run.
 * Everything is checked against its digest again, starting with the one that the order names.
 */
import {
  type Architecture,
  type BlobSource,
  choosePlatform,
  configBytesMax,
  type Digest,
  digestOf,
  type ImageConfig,
  type ImageIndex,
  type Layer,
  type Manifest,
  manifestBytesMax,
  OciError,
  parseConfig,
  parseManifest,
  verifiedBlob,
} from '@rackwright/oci';
import { WebBroken } from '@rackwright/platform';

export interface CommandImage {
  readonly config: ImageConfig;
  /** The lowest first. */
  readonly layers: readonly Layer[];
}

/** Reads manifest and configuration. Rejects with `OciError`. */
export async function readImage(
  source: BlobSource,
  digest: Digest,
  architecture: Architecture,
  signal: AbortSignal,
): Promise<CommandImage> {
  const named = await readManifest(source, digest, signal);
  const manifest =
    named.kind === 'index'
      ? await readManifest(source, choosePlatform(named, architecture).digest, signal)
      : named;
  if (manifest.kind === 'index') {
    throw new OciError('malformed', 'the index of the image leads to another index');
  }
  const { config: descriptor, layers } = manifest;
  if (descriptor.sizeBytes > configBytesMax) {
    throw new OciError('tooLarge', `its configuration has more than ${configBytesMax} bytes`);
  }
  const parts: Uint8Array[] = [];
  for await (const part of verifiedBlob(source, descriptor, { signal })) parts.push(part);
  const config = parseConfig(Buffer.concat(parts), layers.length);
  if (config.os !== 'linux' || config.architecture !== architecture) {
    const found = `${config.os}/${config.architecture}`.slice(0, 100);
    throw new OciError('notFound', `the image is for ${found}; this is linux/${architecture}`);
  }
  return { config, layers };
}

/** A manifest's size is known only where an index names it. */
async function readManifest(
  source: BlobSource,
  digest: Digest,
  signal: AbortSignal,
): Promise<Manifest | ImageIndex> {
  const blob = await source.open(digest, 0, signal);
  const parts: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const part of blob.chunks) {
      bytes += part.length;
      if (bytes > manifestBytesMax) {
        throw new OciError('tooLarge', `the manifest has more than ${manifestBytesMax} bytes`);
      }
      parts.push(part);
    }
  } catch (error) {
    throw error instanceof WebBroken ? new OciError('unreachable', error.message) : error;
  } finally {
    blob.close();
  }
  const whole = Buffer.concat(parts);
  if (digestOf(whole) === digest) return parseManifest(whole);
  throw new OciError('digestMismatch', `what the agent serves is not the manifest ${digest}`);
}

/** Users that a program of ours may have: this machine's root, and nobody else. */
const rootUsers: ReadonlySet<string> = new Set(['', '0', '0:0', 'root', 'root:root', 'root:0']);

/** Why this image cannot be run here, as it is configured; undefined: it can. */
export function configProblem({ user, entrypoint, command }: ImageConfig): string | undefined {
  if (!rootUsers.has(user)) {
    const shown = JSON.stringify(user.slice(0, 64));
    return `the image wants the user ${shown}; only root (0) is taken here`;
  }
  if (entrypoint.length === 0 && command.length === 0) {
    return 'the image names no program: neither Entrypoint nor Cmd';
  }
  return undefined;
}

/** The program and its arguments: given ones replace the image's own. */
export function commandLine(
  { entrypoint, command }: ImageConfig,
  given: readonly string[],
): readonly string[] {
  return [...entrypoint, ...(given.length > 0 ? given : command)];
}
