/** A bundle of a release has its version here. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

/** The version that the runner states in its Hello and in evidence. */
export const runnerVersion =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : '0.1.0';
