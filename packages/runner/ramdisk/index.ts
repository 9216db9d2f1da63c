/** The build of the ramdisk, and the fetching of Debian packages that it and the tests share. */
export type { RamdiskArchitecture } from './architecture.ts';
export {
  archiveFolder,
  buildRamdisk,
  type Ramdisk,
  type RamdiskManifest,
  ramdiskFolder,
} from './build.ts';
export { type DebianArchive, type DebianPackage, openArchive } from './debian.ts';
export { type PinnedNode, pinnedNode } from './pinned-node.ts';
