/** Images of the Open Container Initiative: references, manifests, registries, layers. */
export { type Digest, digestOf, hexOf, parseDigest, RunningDigest } from './digest.ts';
export { isOciError, OciError, type OciFailureKind } from './failure.ts';
export { type LayerPlace, layerPlace, pathParts } from './layer/path.ts';
export { defaultTarLimits, readTar, type TarEntry, type TarLimits } from './layer/tar.ts';
export {
  type Architecture,
  choosePlatform,
  configBytesMax,
  type Descriptor,
  type ImageConfig,
  type ImageIndex,
  type IndexEntry,
  type Layer,
  type Manifest,
  manifestBytesMax,
  parseConfig,
  parseManifest,
} from './manifest.ts';
export {
  formatReference,
  isRegistry,
  isRepository,
  parseReference,
  type Reference,
  type ReferenceResult,
} from './reference.ts';
export {
  defaultWebLimits,
  plainBlobs,
  type RegistryAccess,
  RegistryClient,
} from './registry/client.ts';
export {
  type BlobReading,
  type BlobSource,
  type OpenBlob,
  verifiedBlob,
} from './registry/source.ts';
export type { RegistryCredential } from './registry/token.ts';
