/** A bundle of a release has its version here. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

/** What this agent calls itself towards the control plane. */
export const agentVersion =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : '0.1.0';
