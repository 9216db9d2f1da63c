/**
 * An artifact's content for a machine: a disk, or a kernel and its ramdisks to boot without one.
 * Pure.
 *
 * Three shapes are accepted: ours (a layer per role, named by its media type), and two with exactly
 * one layer: that of podman and Ironic, and a plain file that any tool has pushed.
 *
 * 1. A layer of an artifact of ours whose role is not known is refused, never left out.
 * 2. A container image is no disk.
 */
import { type Digest, parseDigest } from '../digest.ts';
import { OciError } from '../failure.ts';
import type { Annotations, Architecture, Descriptor } from '../manifest.ts';
import type { Artifact, ArtifactLayer } from './artifact.ts';
import { type DeclaredDisk, declaredBy, type LayerRole, roleOf } from './media-type.ts';

/** A disk as a file, with all its declared properties. */
export interface DiskImage extends DeclaredDisk {
  /** The file as it is fetched. */
  readonly blob: Descriptor;
  /** Of the decompressed content: a reader of the written disk has to find it. */
  readonly contentDigest?: Digest;
  readonly contentBytes?: number;
  /** Undefined when undeclared. */
  readonly architecture: Architecture | undefined;
}

/** The files that a machine boots over the network to run without a disk. */
export interface NetbootSet {
  readonly kernel: Descriptor;
  /** In their order. */
  readonly initrds: readonly Descriptor[];
  readonly kernelArguments: string;
}

/** At least one of the two. */
export interface HostImage {
  readonly disk?: DiskImage;
  readonly netboot?: NetbootSet;
  /** The builder's version; empty when there is none. */
  readonly version: string;
}

export const annotationKeys = {
  title: 'org.opencontainers.image.title',
  version: 'org.opencontainers.image.version',
  contentBytes: 'dev.rackwright.content.size',
  contentDigest: 'dev.rackwright.content.digest',
  kernelArguments: 'dev.rackwright.kernel.arguments',
  architecture: 'dev.rackwright.architecture',
} as const;

const initrdsMax = 8;
const versionCharactersMax = 128;
const kernelArgumentsForm = /^[\x20-\x7e]{0,2048}$/;

/** Throws `OciError` when it is nothing that a machine could run. */
export function readHostImage(
  artifact: Artifact,
  architecture: Architecture | undefined,
): HostImage {
  const { layers, annotations } = artifact;
  const version = (annotations[annotationKeys.version] ?? '').slice(0, versionCharactersMax);
  const roles = layers.map((layer) => ({ layer, role: roleOf(layer.mediaType) }));
  if (roles.some(({ role }) => role !== undefined)) {
    return { ...readRoles(roles, architecture), version };
  }
  const [layer, ...more] = layers;
  if (layer === undefined || more.length > 0) {
    const message = `this is no image of a disk: it has ${layers.length} layers of other kinds`;
    throw new OciError('malformed', message);
  }
  return { disk: readPlainFile(layer, architecture), version };
}

interface Role {
  readonly layer: ArtifactLayer;
  readonly role: LayerRole | undefined;
}

function readRoles(
  roles: readonly Role[],
  architecture: Architecture | undefined,
): Pick<HostImage, 'disk' | 'netboot'> {
  const strange = roles.find(({ role }) => role === undefined);
  if (strange !== undefined) {
    const type = JSON.stringify(strange.layer.mediaType.slice(0, 100));
    throw new OciError('malformed', `the image has a layer of type ${type}, which is not known`);
  }
  const disks = roles.flatMap(({ layer, role }) =>
    role?.role === 'disk' ? [describeDisk(layer, role, architecture)] : [],
  );
  const layersOf = (name: LayerRole['role']): readonly ArtifactLayer[] =>
    roles.filter(({ role }) => role?.role === name).map(({ layer }) => layer);
  const [kernels, initrds] = [layersOf('kernel'), layersOf('initrd')];
  if (disks.length > 1 || kernels.length > 1 || initrds.length > initrdsMax) {
    const counts = `${disks.length} disks, ${kernels.length} kernels, ${initrds.length} ramdisks`;
    const most = `at most one disk, one kernel and ${initrdsMax} ramdisks are taken`;
    throw new OciError('malformed', `the image has ${counts}; ${most}`);
  }
  const [disk] = disks;
  const [kernel] = kernels;
  if (kernel === undefined && initrds.length > 0) {
    throw new OciError('malformed', 'the image has a ramdisk and no kernel');
  }
  return {
    ...(disk === undefined ? {} : { disk }),
    ...(kernel === undefined ? {} : { netboot: readNetboot(kernel, initrds) }),
  };
}

function readNetboot(kernel: ArtifactLayer, initrds: readonly ArtifactLayer[]): NetbootSet {
  const kernelArguments = kernel.annotations[annotationKeys.kernelArguments] ?? '';
  if (!kernelArgumentsForm.test(kernelArguments)) {
    const message = 'the kernel arguments of the image are more than 2048 plain characters';
    throw new OciError('malformed', message);
  }
  return { kernel: plain(kernel), initrds: initrds.map(plain), kernelArguments };
}

const archiveForm = /\.tar(?:[+.](?:gzip|zstd))?$/;

/** One layer of any type: its file name says what it is, or its first bytes do. */
function readPlainFile(layer: ArtifactLayer, architecture: Architecture | undefined): DiskImage {
  const title = layer.annotations[annotationKeys.title] ?? '';
  if (title === '' && archiveForm.test(layer.mediaType)) {
    const message = 'this is a container image, not a disk: its layer is an archive';
    throw new OciError('malformed', message);
  }
  return describeDisk(layer, declaredBy(title, layer.mediaType), architecture);
}

function describeDisk(
  layer: ArtifactLayer,
  { format, compression }: DeclaredDisk,
  architecture: Architecture | undefined,
): DiskImage {
  return {
    ...(format === undefined ? {} : { format }),
    ...(compression === undefined ? {} : { compression }),
    ...{ blob: plain(layer), architecture },
    ...readContent(layer.annotations),
  };
}

function readContent(annotations: Annotations): Pick<DiskImage, 'contentBytes' | 'contentDigest'> {
  const { contentBytes: sizeKey, contentDigest: digestKey } = annotationKeys;
  const [size, digest] = [annotations[sizeKey], annotations[digestKey]];
  if (size !== undefined && !/^\d{1,15}$/.test(size)) {
    throw new OciError('malformed', `the annotation "${sizeKey}" is no number of bytes`);
  }
  const contentDigest = digest === undefined ? undefined : parseDigest(digest);
  if (digest !== undefined && contentDigest === undefined) {
    throw new OciError('malformed', `the annotation "${digestKey}" is no SHA-256`);
  }
  return {
    ...(size === undefined ? {} : { contentBytes: Number(size) }),
    ...(contentDigest === undefined ? {} : { contentDigest }),
  };
}

function plain({ mediaType, digest, sizeBytes }: ArtifactLayer): Descriptor {
  return { mediaType, digest, sizeBytes };
}
