/**
 * Manifests, indexes and configurations of images (image-spec 1.1, and the Docker formats that
 * registries still hold). Pure.
 *
 * 1. A descriptor without a size or a digest that we can check is refused.
 * 2. Of an index exactly one manifest is chosen: the first of linux and the wanted architecture.
 *    Nobody gets another one instead.
 */
import { type Digest, parseDigest } from './digest.ts';
import { OciError } from './failure.ts';
import { asObject, listAt, type OciJsonObject, parseJson, textAt, textsAt } from './json.ts';

/** The names of image-spec and Go. */
export type Architecture = 'amd64' | 'arm64';

export type Annotations = Readonly<Record<string, string>>;

export interface Descriptor {
  readonly mediaType: string;
  readonly digest: Digest;
  readonly sizeBytes: number;
}

export interface Layer extends Descriptor {
  readonly compression: 'none' | 'gzip' | 'zstd';
}

export interface Manifest {
  readonly kind: 'manifest';
  readonly config: Descriptor;
  /** The lowest first. */
  readonly layers: readonly Layer[];
}

export interface IndexEntry extends Descriptor {
  readonly os: string;
  readonly architecture: string;
  readonly variant: string;
  readonly annotations: Annotations;
}

export interface ImageIndex {
  readonly kind: 'index';
  readonly manifests: readonly IndexEntry[];
}

/** The part of a configuration about running the image. */
export interface ImageConfig {
  readonly os: string;
  readonly architecture: string;
  readonly user: string;
  readonly environment: Readonly<Record<string, string>>;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
  readonly directory: string;
  /** The digests of the layers when they are unpacked, the lowest first. */
  readonly diffIds: readonly Digest[];
}

export const manifestMediaTypes = [
  'application/vnd.oci.image.manifest.v1+json',
  'application/vnd.oci.image.index.v1+json',
  'application/vnd.docker.distribution.manifest.v2+json',
  'application/vnd.docker.distribution.manifest.list.v2+json',
] as const;

/** Registries must take manifests up to here (distribution-spec, "Pushing manifests"). */
export const manifestBytesMax = 4 * 1024 * 1024;
export const configBytesMax = 4 * 1024 * 1024;
const layersMax = 127;
const indexEntriesMax = 1_000;
const annotationsMax = 1_000;
const configItemsMax = 1_000;
const layerForm =
  /^application\/vnd\.(?:oci\.image\.layer(?:\.nondistributable)?\.v1\.tar(?:\+(gzip|zstd))?|docker\.image\.rootfs\.diff\.tar(?:\.(gzip))?)$/;
const configForm =
  /^application\/vnd\.(oci\.image\.config\.v1|docker\.container\.image\.v1)\+json$/;

/** A manifest or an index, distinguished by its fields. */
export function parseManifest(bytes: Uint8Array): Manifest | ImageIndex {
  const object = parseJson(bytes, 'manifest');
  if (object['schemaVersion'] !== 2) {
    throw new OciError('malformed', 'the manifest is not of schema version 2');
  }
  const isManifest = 'config' in object || 'layers' in object;
  const isIndex = 'manifests' in object;
  if (isManifest === isIndex) {
    throw new OciError('malformed', 'the manifest names neither layers nor manifests, or both');
  }
  return isIndex ? readIndex(object) : readManifest(object);
}

function readManifest(object: OciJsonObject): Manifest {
  const config = readDescriptor(object['config'], '"config"');
  if (!configForm.test(config.mediaType)) {
    const type = JSON.stringify(config.mediaType.slice(0, 100));
    throw new OciError('malformed', `this is no image: its configuration is of type ${type}`);
  }
  const layers = listAt(object, 'layers', layersMax).map((item) => {
    const layer = readDescriptor(item, 'a layer');
    const found = layerForm.exec(layer.mediaType);
    if (found === null) {
      const type = JSON.stringify(layer.mediaType.slice(0, 100));
      throw new OciError('malformed', `a layer has the type ${type}, which is not known here`);
    }
    const compression = (found[1] ?? found[2] ?? 'none') as Layer['compression'];
    return { ...layer, compression };
  });
  return { kind: 'manifest', config, layers };
}

/** The entries of an index. */
export function readIndex(object: OciJsonObject): ImageIndex {
  const manifests = listAt(object, 'manifests', indexEntriesMax).map((item) => {
    const entry = asObject(item, 'a manifest of the index');
    const platform = entry['platform'] === undefined ? {} : asObject(entry['platform'], 'platform');
    return {
      ...readDescriptor(item, 'a manifest of the index'),
      os: textAt(platform, 'os'),
      architecture: textAt(platform, 'architecture'),
      variant: textAt(platform, 'variant'),
      annotations: readAnnotations(entry),
    };
  });
  return { kind: 'index', manifests };
}

/** The value of "annotations"; absent and null are none. */
export function readAnnotations(object: OciJsonObject): Annotations {
  const found = asObject(object['annotations'] ?? {}, '"annotations"');
  const entries = Object.entries(found);
  if (entries.length > annotationsMax) {
    const message = `"annotations" has ${entries.length} entries; at most ${annotationsMax}`;
    throw new OciError('tooLarge', message);
  }
  const texts = entries.map(([key, value]): [string, string] => {
    if (typeof value === 'string') return [key, value];
    throw new OciError('malformed', '"annotations" holds something that is no text');
  });
  return Object.fromEntries(texts);
}

/** A descriptor; `name` names it in errors. */
export function readDescriptor(value: unknown, name: string): Descriptor {
  const object = asObject(value, name);
  const digestText = textAt(object, 'digest');
  const digest = parseDigest(digestText);
  if (digest === undefined) {
    const shown = JSON.stringify(digestText.slice(0, 100));
    throw new OciError('malformed', `${name} has the digest ${shown}; only sha256 is taken`);
  }
  const { size } = object as { size?: unknown };
  if (typeof size !== 'number' || !Number.isSafeInteger(size) || size < 0) {
    throw new OciError('malformed', `${name} has no size`);
  }
  return { mediaType: textAt(object, 'mediaType'), digest, sizeBytes: size };
}

/** The image for linux on `architecture`; a refusal names the present platforms. */
export function choosePlatform({ manifests }: ImageIndex, architecture: Architecture): IndexEntry {
  const chosen = manifests.find((entry) => entry.os === 'linux' && fits(entry, architecture));
  if (chosen !== undefined) return chosen;
  const there = [...new Set(manifests.map((entry) => `${entry.os}/${entry.architecture}`))];
  throw noPlatform(architecture, there);
}

/** The error that an image is there only for the platforms of `there`. */
export function noPlatform(architecture: Architecture, there: readonly string[]): OciError {
  const known = there.length === 0 ? 'nothing' : there.slice(0, 10).join(', ').slice(0, 200);
  const message = `the image is not there for linux/${architecture}: ${known} is`;
  return new OciError('noPlatform', message);
}

/** Names that the kernel and some builders use instead. */
const aliases: Readonly<Record<string, string>> = { x86_64: 'amd64', aarch64: 'arm64' };

/** arm64 has one variant, v8; some builders name it and some do not. */
export function fits(
  entry: Pick<IndexEntry, 'architecture' | 'variant'>,
  architecture: Architecture,
): boolean {
  if ((aliases[entry.architecture] ?? entry.architecture) !== architecture) return false;
  return architecture !== 'arm64' || entry.variant === '' || entry.variant === 'v8';
}

/** Parses a configuration; `layers`: the number of layers in the manifest. */
export function parseConfig(bytes: Uint8Array, layers: number): ImageConfig {
  const object = parseJson(bytes, 'configuration of the image');
  const config = asObject(object['config'] ?? {}, '"config" of the configuration');
  const rootfs = asObject(object['rootfs'], '"rootfs" of the configuration');
  const diffIds = textsAt(rootfs, 'diff_ids', layersMax).map((text) => {
    const digest = parseDigest(text);
    if (digest !== undefined) return digest;
    throw new OciError('malformed', '"diff_ids" holds something that is no SHA-256');
  });
  if (diffIds.length !== layers) {
    const counts = `${layers} layers, its configuration ${diffIds.length}`;
    throw new OciError('malformed', `the manifest names ${counts}`);
  }
  return {
    os: textAt(object, 'os'),
    architecture: textAt(object, 'architecture'),
    user: textAt(config, 'User'),
    environment: readEnvironment(textsAt(config, 'Env', configItemsMax)),
    entrypoint: textsAt(config, 'Entrypoint', configItemsMax),
    command: textsAt(config, 'Cmd', configItemsMax),
    directory: textAt(config, 'WorkingDir'),
    diffIds,
  };
}

/** "NAME=value"; of a name that occurs twice the last counts, as for every container runtime. */
function readEnvironment(lines: readonly string[]): Record<string, string> {
  const environment: Record<string, string> = {};
  for (const line of lines) {
    const at = line.indexOf('=');
    if (at < 1 || line.includes('\0')) {
      throw new OciError('malformed', '"Env" holds something that is not NAME=value');
    }
    Object.defineProperty(environment, line.slice(0, at), {
      value: line.slice(at + 1),
      enumerable: true,
      configurable: true,
    });
  }
  return environment;
}
