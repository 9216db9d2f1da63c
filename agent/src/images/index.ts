/** Images of commands and of hosts: the rack's cache of them, and their sources. */

export { waitForAbort } from './aborted.ts';
export { type AdmissionLimits, defaultAdmissionLimits } from './admission.ts';
export {
  BlobCache,
  type BlobCacheParts,
  type BlobFile,
} from './blob-cache.ts';
export { type CarriedKey, DetachedFetches } from './carried-on.ts';
export {
  type ComingHostImage,
  defaultRetryDelaysMs,
  type FromRegistry,
  type FromWeb,
  type HostImageProgress,
  HostImages,
  type HostImagesParts,
  type PinnedHostImage,
  type WantedHostImage,
} from './host-images.ts';
export { type FetchProgress, Images, type PinnedImage, type WantedImage } from './images.ts';
export { Prefetcher, type PrefetcherParts } from './prefetcher.ts';
export {
  architectureNamed,
  type CredentialOf,
  type ImageArchitecture,
  wantedImage,
} from './source.ts';
