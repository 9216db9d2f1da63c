/**
 * The oldest nats-server that keeps the contract. 2.9.10 acknowledges without ever syncing and let
 * two writers win one compare-and-set in nearly half of all races on three replicas; there is no
 * flag that accepts it.
 */
import { StoreError } from '../errors.ts';

export const SERVER_VERSION_FLOOR = '2.10.27';

/** Throws `serverTooOld` for a version below the floor or one that cannot be read. */
export function checkServerVersion(version: string, server: string): void {
  if (isAtLeast(version, SERVER_VERSION_FLOOR)) return;
  throw new StoreError(
    'serverTooOld',
    `nats-server ${server} has version ${version}; at least ${SERVER_VERSION_FLOOR} is needed, ` +
      'because older ones lose acknowledged writes and let two writers win: upgrade it',
  );
}

function isAtLeast(version: string, floor: string): boolean {
  const have = numbers(version);
  const need = numbers(floor);
  if (have === undefined || need === undefined) return false;
  for (const [at, least] of need.entries()) {
    const part = have[at] ?? 0;
    if (part !== least) return part > least;
  }
  return !version.includes('-');
}

function numbers(version: string): number[] | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?$/.exec(version);
  return match?.slice(1, 4).map(Number);
}
