/** Images of hosts: how they are named, requested and resolved. */
export {
  credentialsOfRegistries,
  type HostImageResult,
  hostImageOf,
  type ImageSources,
  internalAddressesOf,
  plainHttpProblem,
  registryOf,
} from './access.ts';
export {
  atDigest,
  byDigest,
  digestOfImage,
  type ImageName,
  imageNameProblem,
  readImageName,
  withoutTag,
} from './name.ts';
export { areSamePlatforms, type PlatformDigests } from './platforms.ts';
export { askRegistries, type RegistryResolverParts } from './registry-resolver.ts';
export { askNobody, type ResolveImage, type ResolveResult, resolveWith } from './resolve.ts';
