/** Images of hosts: how they are named, asked for and resolved. */
export {
  credentialsOfRegistries,
  type HostImageResult,
  hostImageOf,
  plainHttpProblem,
  registryOf,
} from './access.ts';
export {
  byDigest,
  digestOfImage,
  type ImageName,
  imageNameProblem,
  readImageName,
  withoutTag,
} from './name.ts';
