/** A bundle of a release has its version here. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

/** This agent's version in messages to the control plane. */
export const agentVersion =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : '0.1.0';
