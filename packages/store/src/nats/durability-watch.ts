/**
 * Durability while the store is open: a server that was away comes back, and a running one may be
 * restarted with other settings.
 *
 * D1 A replica holder that is found to sync late ends the handle, as it would have refused the
 *    opening.
 * D2 So does one that is back while no answer shows how it syncs.
 *
 * Between a server's return and the next look, up to `WHILE_SILENT_MS`, it may acknowledge writes
 * unseen.
 */
import { StoreError } from '../errors.ts';
import { checkDurability, type DurabilityVerdict } from './durability.ts';

/** Pause before the next look while a holder has not answered, and while all have. */
export const WHILE_SILENT_MS = 5_000;
export const WHILE_PROVEN_MS = 60_000;
/** Looks in a row that may fail to show how a server syncs: its monitor starts after it. */
export const UNKNOWNS_MAX = 3;

export interface DurabilityPath {
  /** Asks servers and leader. Throws `serverTooOld`; any other failure shows nothing. */
  check(provenBefore: readonly string[]): Promise<DurabilityVerdict>;
  /** Ends early once the store closes. */
  pause(delayMs: number): Promise<void>;
  over(): boolean;
}

/** Answers why the handle must end; undefined once the store closes. */
export async function watchDurability(
  path: DurabilityPath,
  opened: DurabilityVerdict,
): Promise<StoreError | undefined> {
  let last = opened;
  for (let unknowns = 0; ; ) {
    const isSettled = last.silent.length === 0 && unknowns === 0;
    await path.pause(isSettled ? WHILE_PROVEN_MS : WHILE_SILENT_MS);
    if (path.over()) return undefined;
    try {
      const verdict = await path.check(last.proven);
      unknowns = verdict.survivesPowerLoss === 'unknown' ? unknowns + 1 : 0;
      if (unknowns > 0 && unknowns < UNKNOWNS_MAX) continue;
      checkDurability(verdict);
      last = verdict;
    } catch (error) {
      if (error instanceof StoreError && error.code !== 'unavailable') return error;
    }
  }
}
