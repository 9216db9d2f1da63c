/** The data that the pure rules of a pool read and change in one pass. */
import type { HostUid, ImageRegistry, PoolStatus, Run, store as wire } from '@rackwright/messages';
import type { SeenHost } from './seen.ts';

/** The known state of a slot's run. */
export type SlotNews =
  | { readonly kind: 'run'; readonly run: Run }
  /** The host does not begin it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The host stays in service, and got no request: it goes again when it may. */
  | { readonly kind: 'recalled' }
  /** The run is no longer stored. */
  | { readonly kind: 'lost'; readonly message: string };

/** The data in progress. */
export interface PoolDraft {
  readonly record: wire.PoolRecord;
  readonly status: PoolStatus;
  readonly hosts: ReadonlyMap<HostUid, SeenHost>;
  readonly nowMs: number;
  /** The fleet's settings for registries. */
  readonly registries: readonly ImageRegistry[];
  /** To be written before the record. */
  readonly deployments: wire.DeploymentRecord[];
}
