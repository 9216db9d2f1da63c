/** Distinguishes one state of a file from another without reading it. */

export interface FileTraits {
  readonly ino: bigint;
  readonly size: bigint;
  readonly mtimeNs: bigint;
}

/** Another one when the contents may be others. */
export function versionOf({ ino, size, mtimeNs }: FileTraits): string {
  return [ino, size, mtimeNs].map((one) => one.toString(16)).join('-');
}
