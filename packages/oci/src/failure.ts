/** What can go wrong with an image: a closed list, with words for people. */

export const ociFailures = [
  /** The registry wants other credentials, or does not give this repository to these. */
  'unauthorized',
  /** It has no such repository, manifest or blob. */
  'notFound',
  /** What came is not what its digest names. */
  'digestMismatch',
  /** More than a limit allows. */
  'tooLarge',
  /** It does not answer, or has trouble of its own: it may pass. */
  'unreachable',
  /** What came is not what the standard says, or not what we take. */
  'malformed',
] as const;
export type OciFailureKind = (typeof ociFailures)[number];

/** The only error that this package throws. No message carries a secret. */
export class OciError extends Error {
  override readonly name = 'OciError';
  readonly kind: OciFailureKind;

  constructor(kind: OciFailureKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export function isOciError(error: unknown, ...kinds: readonly OciFailureKind[]): error is OciError {
  return error instanceof OciError && (kinds.length === 0 || kinds.includes(error.kind));
}
