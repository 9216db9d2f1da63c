/**
 * Admits a bounded number of holders at once.
 *
 * A1 Hosts are served in rotation: one that asks often does not keep the others waiting.
 * A2 A waiting request learns its position whenever that changes; 1 is next.
 * A3 The number of waiting requests is bounded.
 */
import type { DeploymentId, HostUid } from '@rackwright/messages';
import { OciError } from '@rackwright/oci';

/** Who asks for an image: a host, a deployment that boots over the network, or the prefetch. */
export type ImageRequester = HostUid | DeploymentId | 'prefetch';

export interface AdmissionLimits {
  readonly atOnceMax: number;
  readonly waitingMax: number;
}

export const defaultAdmissionLimits: AdmissionLimits = { atOnceMax: 8, waitingMax: 10_000 };

interface QueuedFetch {
  readonly onPosition: (position: number) => void;
  readonly admit: () => void;
  position: number;
}

export class ImageAdmission {
  readonly #limits: AdmissionLimits;
  #inside = 0;
  /**
   * The waiting requests by host, in the order of service. A host without a request has no entry.
   */
  readonly #queues = new Map<ImageRequester, QueuedFetch[]>();
  #waiting = 0;

  constructor(limits: AdmissionLimits = defaultAdmissionLimits) {
    this.#limits = limits;
  }

  /**
   * Resolves with the function that ends the admission. Rejects with `OciError` when `signal` is
   * aborted.
   */
  async enter(
    requester: ImageRequester,
    signal: AbortSignal,
    onPosition: (position: number) => void,
  ): Promise<() => void> {
    if (signal.aborted) throw new OciError('cancelled', 'given up');
    if (this.#inside >= this.#limits.atOnceMax) await this.#wait(requester, signal, onPosition);
    else this.#inside += 1;
    let isInside = true;
    return () => {
      if (!isInside) return;
      isInside = false;
      this.#leave();
    };
  }

  async #wait(
    requester: ImageRequester,
    signal: AbortSignal,
    onPosition: (position: number) => void,
  ): Promise<void> {
    const { waitingMax } = this.#limits;
    if (this.#waiting >= waitingMax) {
      throw new OciError('tooMany', `${waitingMax} wait for images already`);
    }
    const admitted = Promise.withResolvers<void>();
    const waiting: QueuedFetch = { onPosition, admit: admitted.resolve, position: 0 };
    const giveUp = (): void => {
      if (this.#remove(requester, waiting)) admitted.reject(new OciError('cancelled', 'given up'));
    };
    this.#queues.set(requester, [...(this.#queues.get(requester) ?? []), waiting]);
    this.#waiting += 1;
    this.#reportPositions();
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      await admitted.promise;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  /** The slot goes to the next request, or becomes free. */
  #leave(): void {
    const [next] = this.#queues;
    const [requester, [first] = []] = next ?? [];
    if (requester === undefined || first === undefined) {
      this.#inside -= 1;
      return;
    }
    this.#remove(requester, first);
    // A1: further requests of this host come after those of all other hosts.
    const rest = this.#queues.get(requester);
    if (rest !== undefined) {
      this.#queues.delete(requester);
      this.#queues.set(requester, rest);
    }
    this.#reportPositions();
    first.admit();
  }

  /** False when it does not wait any more. */
  #remove(requester: ImageRequester, waiting: QueuedFetch): boolean {
    const own = this.#queues.get(requester) ?? [];
    const rest = own.filter((each) => each !== waiting);
    if (rest.length === own.length) return false;
    if (rest.length === 0) this.#queues.delete(requester);
    else this.#queues.set(requester, rest);
    this.#waiting -= 1;
    this.#reportPositions();
    return true;
  }

  /** A2. */
  #reportPositions(): void {
    const longest = Math.max(0, ...[...this.#queues.values()].map(({ length }) => length));
    let position = 0;
    for (let round = 0; round < longest; round += 1) {
      for (const own of this.#queues.values()) {
        const waiting = own[round];
        if (waiting === undefined) continue;
        position += 1;
        if (waiting.position === position) continue;
        waiting.position = position;
        waiting.onPosition(position);
      }
    }
  }
}
