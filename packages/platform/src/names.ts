/** Addresses of names, for programs that would look a name up again by themselves. */

export type NameAnswer =
  | { readonly kind: 'found'; readonly address: string }
  /** It does not resolve. */
  | { readonly kind: 'unknown'; readonly message: string }
  /** It resolves to internal addresses alone (`internal-address.ts`). */
  | { readonly kind: 'forbidden'; readonly message: string };

export interface Names {
  /** An address of `name` that is no internal one. Never rejects. */
  addressOf(name: string): Promise<NameAnswer>;
}
