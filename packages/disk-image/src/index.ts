/**
 * Disk images, as far as they can be understood without touching a disk: formats, partition tables,
 * first-boot data, boot entries, and which disk is the root disk.
 */
export {
  type BootEntry,
  type BootPosition,
  bootEntryWrites,
  type EfiVariables,
  removableLoader,
  type VariableWrite,
} from './boot-entry.ts';
export type { Content } from './content.ts';
export { type CpioEntry, cpioArchive, foldersAbove } from './cpio.ts';
export { ImageError, type ImageFault } from './failure.ts';
export {
  type Compression,
  checkUnpacked,
  compressions,
  type DeclaredFormat,
  type DiskFormat,
  diskFormats,
  type FoundFormat,
  formatOf,
  magicBytes,
} from './format.ts';
export { gathered, type PieceMemory, pieceMemory } from './gather.ts';
export { type DiskFacts, type RootDiskHints, rootDisk } from './hints.ts';
export { type BootMediumLoaders, makeBootMedium } from './medium/iso.ts';
export { openQcow2, type Qcow2Image } from './qcow2/reader.ts';
export { checkDigest, digestPieces, type PieceDigests, type Ranges, rangesOf } from './ranges.ts';
export { cloudConfigToCall, type NoCloudFirstBoot, noCloudSeed } from './seed/no-cloud.ts';
export { makeSeed, type Seed, seedName, seedPartitionBytes } from './seed/seed.ts';
export {
  type ByteSource,
  defaultReadingLimits,
  type OpenBytes,
  type ReadingLimits,
  readFrom,
  SourceBroken,
} from './source.ts';
export { type BootableFirmware, checkBootable, efiSystemPartition } from './table/bootable.ts';
export { type FittedPartition, type FittedTable, fitTable } from './table/fit.ts';
export {
  chooseTarget,
  isKeptDisk,
  type KeptHints,
  namesOfNone,
  type TargetCandidate,
  type TargetChoice,
} from './target.ts';
export { type ByteFilter, unpack } from './unpack.ts';
