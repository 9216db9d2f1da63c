/** The content of a folder, at any depth. */

/** Paths are below the folder, with "/" between names; `mode` holds the permission bits. */
export type TreeEntry =
  | { readonly kind: 'folder'; readonly path: string }
  | {
      readonly kind: 'file';
      readonly path: string;
      readonly mode: number;
      readonly bytes: Uint8Array;
    }
  | { readonly kind: 'link'; readonly path: string; readonly target: string };

export interface TreeBounds {
  readonly entriesMax: number;
  /** The size of all files together. */
  readonly bytesMax: number;
}
