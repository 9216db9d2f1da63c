import type { Architecture } from '@rackwright/oci';

/** What we run on, as images name it. */
export const ownArchitecture: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
