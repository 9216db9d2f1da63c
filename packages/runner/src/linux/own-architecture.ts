import type { Architecture } from '@rackwright/oci';

/** This machine's architecture, as images name it. */
export const ownArchitecture: Architecture = process.arch === 'arm64' ? 'arm64' : 'amd64';
