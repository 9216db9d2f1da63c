/** The name and version of this control plane in signed documents. */

/** A release's bundle has its version here. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

const ofRelease =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : undefined;

export const controlPlaneVersion = ofRelease ?? '0.1.0';

/** Whether this runs as a release's single file, whose digest identifies the build. */
export const isBundled = ofRelease !== undefined;

/** The software that made a statement, as certificates name it. */
export interface Software {
  readonly version: string;
  /** Lower-case hex, of the program's file; unset: it runs from its sources. */
  readonly buildSha256?: string;
}
