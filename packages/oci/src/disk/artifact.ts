/**
 * Manifests of artifacts that are no container images (image-spec 1.1, "Guidelines for Artifact
 * Usage"). Their configuration is never read.
 */

import { OciError } from '../failure.ts';
import { asObject, listAt, type OciJsonObject, parseJson, textAt } from '../json.ts';
import {
  type Annotations,
  type Descriptor,
  type ImageIndex,
  readAnnotations,
  readDescriptor,
  readIndex,
} from '../manifest.ts';

export interface ArtifactLayer extends Descriptor {
  readonly annotations: Annotations;
}

export interface Artifact {
  readonly kind: 'artifact';
  /** "artifactType", or without one the media type of the configuration. */
  readonly type: string;
  readonly layers: readonly ArtifactLayer[];
  readonly annotations: Annotations;
}

const layersMax = 127;

/** An artifact or an index, distinguished by its fields. */
export function parseArtifact(bytes: Uint8Array): Artifact | ImageIndex {
  const object = parseJson(bytes, 'manifest');
  if (object['schemaVersion'] !== 2) {
    throw new OciError('malformed', 'the manifest is not of schema version 2');
  }
  const isIndex = 'manifests' in object;
  if (isIndex === 'layers' in object) {
    throw new OciError('malformed', 'the manifest names neither layers nor manifests, or both');
  }
  return isIndex ? readIndex(object) : readArtifact(object);
}

function readArtifact(object: OciJsonObject): Artifact {
  const config = asObject(object['config'] ?? {}, '"config"');
  const layers = listAt(object, 'layers', layersMax).map((item) => ({
    ...readDescriptor(item, 'a layer'),
    annotations: readAnnotations(asObject(item, 'a layer')),
  }));
  return {
    ...{ kind: 'artifact', layers, annotations: readAnnotations(object) },
    type: textAt(object, 'artifactType') || textAt(config, 'mediaType'),
  };
}
