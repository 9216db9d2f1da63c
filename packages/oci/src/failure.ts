/** The failures of an image: a closed list, with words for people. */

export const ociFailures = [
  /** The registry wants other credentials, or does not give this repository to these. */
  'unauthorized',
  /** Its certificate is not trusted for its name. */
  'untrusted',
  /** It is at an internal address that is not listed, or redirects to one. */
  'forbidden',
  /** It has no such repository, manifest or blob. */
  'notFound',
  /** The image does not exist for the wanted platform. */
  'noPlatform',
  /** The received bytes do not match their digest. */
  'digestMismatch',
  /** It ends before it should, and says itself that this is all. */
  'truncated',
  /** More than a limit allows. */
  'tooLarge',
  /** Too many requests (429): it may pass, at `retryAfterMs` when the registry gives it. */
  'tooMany',
  /** It does not answer, or has trouble of its own: it may pass. */
  'unreachable',
  /** The caller gave it up. */
  'cancelled',
  /**
   * Its answers are not those of a registry: no TLS, a proxy, a redirect to nowhere. The image may
   * be fine; the access has to be checked.
   */
  'refused',
  /** The disk of this machine takes no more. */
  'noSpace',
  /** The received bytes violate the standard, or a restriction of ours. */
  'malformed',
] as const;
export type OciFailureKind = (typeof ociFailures)[number];

interface OciErrorOptions {
  readonly retryAfterMs?: number | undefined;
  /** What was caught, for the log. */
  readonly cause?: unknown;
}

/** The only error that this package throws. No message carries a secret. */
export class OciError extends Error {
  override readonly name = 'OciError';
  readonly kind: OciFailureKind;
  /** The pause that the other side asks for, when it does: milliseconds. */
  readonly retryAfterMs: number | undefined;

  constructor(
    kind: OciFailureKind,
    message: string,
    { retryAfterMs, cause }: OciErrorOptions = {},
  ) {
    super(message, { cause });
    this.kind = kind;
    this.retryAfterMs = retryAfterMs;
  }
}

export function isOciError(error: unknown, ...kinds: readonly OciFailureKind[]): error is OciError {
  return error instanceof OciError && (kinds.length === 0 || kinds.includes(error.kind));
}
