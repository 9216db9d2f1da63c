/** Why an image cannot be put onto a disk: a closed list, so that each cause has its own words. */

export type ImageFault =
  /** The source does not serve it, or broke too often. */
  | 'unreachable'
  /** It ends before it should. */
  | 'truncated'
  /** The content is longer than declared. */
  | 'tooLong'
  /** The received bytes do not match the digest. */
  | 'digestMismatch'
  /** The file has another format than the declared one. */
  | 'wrongFormat'
  /** It breaks the rules of its format. */
  | 'malformed'
  /** It is sound, but needs a feature that is not supported here. */
  | 'unsupported'
  /** The image is larger than the disk. */
  | 'tooLarge'
  /** The disk does not return the written bytes. */
  | 'notReadBack'
  /** The firmware of this host would find nothing to boot. */
  | 'notBootable'
  /** The hints fit no disk, or more than one. */
  | 'noRootDisk'
  /** First-boot data that cannot be carried. */
  | 'badSeed';

export class ImageError extends Error {
  override readonly name = 'ImageError';
  readonly fault: ImageFault;

  constructor(fault: ImageFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.fault = fault;
  }
}
