/** The build of the ramdisk, and the fetching of Debian packages that it and the tests share. */
export { buildRamdisk, type Ramdisk, type RamdiskManifest } from './build.ts';
export { type DebianArchive, type DebianPackage, openArchive } from './debian.ts';
