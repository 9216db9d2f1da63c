/** Set when the command is packed; from the tree it is that of the workspaces. */
declare const RACKWRIGHT_PACKAGE_VERSION: string | undefined;

/** As "0.1.0". */
export const version: string =
  typeof RACKWRIGHT_PACKAGE_VERSION === 'string' ? RACKWRIGHT_PACKAGE_VERSION : '0.1.0';
