/**
 * Images whose step has ended while their fetch goes on, for the step that writes them. The fetch
 * goes on in its slot (`ImageAdmission`), and nothing is fetched twice.
 *
 * 1. A host has at most one. It is released when it is whole, when it cannot be fetched, and when
 *    its time is over, also when no step takes it.
 */
import type { DeploymentId, HostUid } from '@rackwright/messages';
import { waitForAbort } from './aborted.ts';
import type { ComingHostImage } from './host-images.ts';

/** The deployment of a fetch, and the architecture. */
export interface CarriedKey {
  readonly hostUid: HostUid;
  readonly deploymentId: DeploymentId;
  readonly architecture: string;
}

interface CarriedFetch {
  readonly key: CarriedKey;
  readonly coming: ComingHostImage;
  readonly limit: CarriedLimit;
}

/** Its time. */
export interface CarriedLimit {
  readonly signal: AbortSignal;
  /** Nobody needs to watch it any more. */
  end(): void;
}

export class DetachedFetches {
  readonly #byHost = new Map<HostUid, CarriedFetch>();

  /** From now on it is released here, unless a step takes it. */
  carry(key: CarriedKey, coming: ComingHostImage, limit: CarriedLimit): void {
    const carried = { key, coming, limit };
    this.#drop(this.#byHost.get(key.hostUid));
    this.#byHost.set(key.hostUid, carried);
    const over = (): void => {
      if (this.#byHost.get(key.hostUid) === carried) this.#drop(carried);
    };
    void Promise.race([coming.whole, waitForAbort(limit.signal)]).then(over, over);
  }

  /** The fetch under way, which the caller has to release from now on; undefined: there is none. */
  take(key: CarriedKey): ComingHostImage | undefined {
    const carried = this.#byHost.get(key.hostUid);
    if (carried === undefined) return undefined;
    const { deploymentId, architecture } = carried.key;
    const isIt = deploymentId === key.deploymentId && architecture === key.architecture;
    if (!isIt || carried.coming.restarted.aborted) {
      this.#drop(carried);
      return undefined;
    }
    this.#forget(carried);
    return carried.coming;
  }

  #drop(carried: CarriedFetch | undefined): void {
    if (carried === undefined) return;
    this.#forget(carried);
    carried.coming.release();
  }

  #forget({ key, limit }: CarriedFetch): void {
    this.#byHost.delete(key.hostUid);
    limit.end();
  }
}
