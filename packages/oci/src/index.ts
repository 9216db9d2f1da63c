/** Images of the Open Container Initiative: references, manifests, registries, layers. */
export {
  type Digest,
  digestOf,
  digestOfHex,
  hexOf,
  parseDigest,
  RunningDigest,
} from './digest.ts';
export {
  annotationKeys,
  type DiskImage,
  type HostImage,
  type NetbootSet,
} from './disk/disk-image.ts';
export { chooseEntry, type FoundImage, findHostImage, type ReadManifest } from './disk/find.ts';
export {
  type DeclaredDisk,
  type DiskCompression,
  declaredBy,
  diskArtifactType,
  diskCompressions,
  diskFormats,
  type LayerRole,
  mediaTypeOf,
  type OciDiskFormat,
} from './disk/media-type.ts';
export {
  emptyConfig,
  indexMediaType,
  manifestMediaType,
  type WrittenHostImage,
  type WrittenLayer,
  writeHostIndex,
  writeHostManifest,
} from './disk/write.ts';
export { isOciError, OciError, type OciFailureKind, ociFailures } from './failure.ts';
export { type LayerTarget, layerTarget, pathParts } from './layer/path.ts';
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
  type ImageReference,
  isRegistry,
  isRepository,
  parseReference,
  type ReferenceResult,
} from './reference.ts';
export { type Pulling, RegistryClient, type ResolvedTag } from './registry/client.ts';
export { defaultWebLimits, type RegistryAccess } from './registry/exchange.ts';
export { type Mirror, MirroredRegistry, mirrorsMax } from './registry/mirrors.ts';
export { defaultPushLimits, type PushedBlob, RegistryPublisher } from './registry/publisher.ts';
export {
  type BlobReading,
  type BlobSource,
  type OpenBlob,
  type ReadersHash,
  verifiedBlob,
} from './registry/source.ts';
export type { RegistryCredential } from './registry/token.ts';
export { plainBlobs, WebFile, type WebFileAccess } from './registry/web-blobs.ts';
