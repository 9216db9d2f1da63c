/** What this control plane calls itself in what it signs. */

/** A bundle of a release has its version here. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

const ofRelease =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : undefined;

export const controlPlaneVersion = ofRelease ?? '0.1.0';

/** Whether this runs as the one file that a release is, whose digest names the build. */
export const isBundled = ofRelease !== undefined;

/** What made a statement, as certificates name it. */
export interface Software {
  readonly version: string;
  /** Lower-case hex, of the program's file; unset: it runs from its sources. */
  readonly buildSha256?: string;
}
