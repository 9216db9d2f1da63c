/**
 * What of images is in the rack's cache, as runners can read it: its end only once all of it was
 * proved. And what was ever proved for which host, for the judge.
 */
import type { HostUid } from '@rackwright/messages';

/** "HOST-UID/RUN" → "HOST-UID" */
function hostOf(deployment: string): string {
  return deployment.split('/')[0] ?? '';
}

export class ImageProofs {
  /** "HOST-UID DIGEST" */
  readonly #readable = new Set<string>();
  readonly #proved = new Set<string>();

  /** It comes anew for this host. */
  begun(hostUid: HostUid, digest: string): void {
    this.#readable.delete(`${hostUid} ${digest}`);
  }

  whole(hostUid: HostUid, digest: string): void {
    this.#readable.add(`${hostUid} ${digest}`);
    this.#proved.add(`${hostUid} ${digest}`);
  }

  isReadable(deployment: string, digest: string): boolean {
    return this.#readable.has(`${hostOf(deployment)} ${digest}`);
  }

  /** Whether it was, since this host was written with it last. */
  isProved(deployment: string, digest: string): boolean {
    return this.#proved.has(`${hostOf(deployment)} ${digest}`);
  }

  written(deployment: string, digest: string): void {
    this.#proved.delete(`${hostOf(deployment)} ${digest}`);
  }
}
