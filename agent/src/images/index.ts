/** Images of commands: the agent's cache of them, and where they come from. */
export { BlobCache, type BlobCacheParts, type BlobFile } from './blob-cache.ts';
export { type FetchProgress, type HeldImage, Images, type WantedImage } from './images.ts';
