/** The NATS driver's entry, loaded only by programs that use it: its client is large. */
import type { StateStore } from '../contract.ts';
import type { NatsStoreOptions } from './options.ts';

export type { Authentication, DurabilityProof, NatsStoreOptions, TlsFiles } from './options.ts';

/**
 * Opens or creates the bucket of a NATS cluster. Throws `unavailable`, `serverTooOld`,
 * `wrongConfiguration`, `durabilityUnproven`, `incarnationMismatch`.
 */
export async function openNatsStore(options: NatsStoreOptions): Promise<StateStore> {
  const driver = await import('./open.ts');
  return driver.openNatsStore(options);
}
