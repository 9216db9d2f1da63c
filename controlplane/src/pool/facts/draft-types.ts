/** What the pure rules of a pool read and change in one pass. */
import type { ImageRegistry, PoolStatus, Run, store as wire } from '@rackwright/messages';
import type { SeenHost } from './seen.ts';

/** What is known of a slot's run. */
export type SlotNews =
  | { readonly kind: 'run'; readonly run: Run }
  /** The host does not begin it. */
  | { readonly kind: 'refused'; readonly message: string }
  /** The host stays in service, and was not asked: it goes again when it may. */
  | { readonly kind: 'recalled' }
  /** The run is no longer kept. */
  | { readonly kind: 'lost'; readonly message: string };

/** What is being worked on. */
export interface PoolDraft {
  readonly record: wire.PoolRecord;
  readonly status: PoolStatus;
  readonly hosts: ReadonlyMap<string, SeenHost>;
  readonly nowMs: number;
  /** How the fleet's registries are asked. */
  readonly registries: readonly ImageRegistry[];
  /** To be written before the record. */
  readonly deployments: wire.DeploymentRecord[];
}
