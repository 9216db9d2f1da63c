/** The content of a disk, from its first byte on: a stream of these. */
export type Content =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'zeros'; readonly length: number };
