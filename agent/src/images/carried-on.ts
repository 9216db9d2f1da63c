/**
 * Images whose step has ended while they still come, for the step that writes them: what is begun
 * goes on meanwhile, in its turn (`Admission`), and nothing is fetched twice.
 *
 * 1. A host has one at most. It is let go when it is whole, when it cannot be had, and when its
 *    time is over, whether or not anybody comes for it.
 */
import type { DeploymentId, HostUid } from '@rackwright/messages';
import { aborted } from './aborted.ts';
import type { ComingHostImage } from './host-images.ts';

/** Of which deployment it is, and for which machines. */
export interface CarriedKey {
  readonly hostUid: HostUid;
  readonly deploymentId: DeploymentId;
  readonly architecture: string;
}

interface Carried {
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

export class CarriedOn {
  readonly #byHost = new Map<string, Carried>();

  /** From now on it is released here, unless somebody takes it. */
  carry(key: CarriedKey, coming: ComingHostImage, limit: CarriedLimit): void {
    const carried = { key, coming, limit };
    this.#drop(this.#byHost.get(key.hostUid));
    this.#byHost.set(key.hostUid, carried);
    const over = (): void => {
      if (this.#byHost.get(key.hostUid) === carried) this.#drop(carried);
    };
    void Promise.race([coming.whole, aborted(limit.signal)]).then(over, over);
  }

  /** The image as it comes, from now on the caller's to release; undefined: it has come, or not. */
  take(key: CarriedKey): ComingHostImage | undefined {
    const carried = this.#byHost.get(key.hostUid);
    if (carried === undefined) return undefined;
    const { deploymentId, architecture } = carried.key;
    const isIt = deploymentId === key.deploymentId && architecture === key.architecture;
    if (!isIt || carried.coming.anew.aborted) {
      this.#drop(carried);
      return undefined;
    }
    this.#forget(carried);
    return carried.coming;
  }

  #drop(carried: Carried | undefined): void {
    if (carried === undefined) return;
    this.#forget(carried);
    carried.coming.release();
  }

  #forget({ key, limit }: Carried): void {
    this.#byHost.delete(key.hostUid);
    limit.end();
  }
}
