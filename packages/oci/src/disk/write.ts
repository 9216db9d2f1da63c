/** Writes manifests of images for hosts, as `disk-image.ts` reads them. Pure. */
import { type Digest, digestOf } from '../digest.ts';
import type { Architecture, Descriptor } from '../manifest.ts';
import { annotationKeys } from './disk-image.ts';
import { diskArtifactType, type LayerRole, mediaTypeOf } from './media-type.ts';

export interface WrittenLayer extends Pick<Descriptor, 'digest' | 'sizeBytes'> {
  readonly role: LayerRole;
  /** The name of the file. */
  readonly title?: string;
  readonly contentBytes?: number;
  readonly contentDigest?: Digest;
  readonly kernelArguments?: string;
}

export interface WrittenHostImage {
  readonly layers: readonly WrittenLayer[];
  readonly version?: string;
  readonly architecture?: Architecture;
}

export const manifestMediaType = 'application/vnd.oci.image.manifest.v1+json';
export const indexMediaType = 'application/vnd.oci.image.index.v1+json';

/**
 * The configuration of an artifact that has none (image-spec, "Guidance for an Empty Descriptor").
 */
export const emptyConfig: Uint8Array = Buffer.from('{}');

/** The manifest; `emptyConfig` is a blob of it. */
export function writeHostManifest({ layers, version, architecture }: WrittenHostImage): Buffer {
  return json({
    schemaVersion: 2,
    mediaType: manifestMediaType,
    artifactType: diskArtifactType,
    config: {
      mediaType: 'application/vnd.oci.empty.v1+json',
      digest: digestOf(emptyConfig),
      size: emptyConfig.length,
    },
    layers: layers.map((layer) => ({
      mediaType: mediaTypeOf(layer.role),
      digest: layer.digest,
      size: layer.sizeBytes,
      annotations: texts({
        [annotationKeys.title]: layer.title,
        [annotationKeys.contentBytes]: layer.contentBytes?.toString(),
        [annotationKeys.contentDigest]: layer.contentDigest,
        [annotationKeys.kernelArguments]: layer.kernelArguments,
      }),
    })),
    annotations: texts({
      [annotationKeys.version]: version,
      [annotationKeys.architecture]: architecture,
    }),
  });
}

/** An index of manifests by architecture. */
export function writeHostIndex(
  manifests: readonly (Pick<Descriptor, 'digest' | 'sizeBytes'> & {
    readonly architecture: Architecture;
  })[],
): Buffer {
  return json({
    schemaVersion: 2,
    mediaType: indexMediaType,
    manifests: manifests.map(({ digest, sizeBytes, architecture }) => ({
      ...{ mediaType: manifestMediaType, digest, size: sizeBytes },
      platform: { os: 'linux', architecture },
    })),
  });
}

function texts(values: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])),
  );
}

function json(value: unknown): Buffer {
  return Buffer.from(JSON.stringify(value));
}
