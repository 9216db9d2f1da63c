/** Changes of one record by compare-and-set. */
import { aborted } from '@rackwright/api';

/** How often one change may lose against other writers. */
const roundsMax = 16;

/**
 * Makes a change anew from what stands there for as long as another writer was faster, which
 * `attempt` says by undefined. It checks the etag itself: who gave one is refused by the next
 * round, and whoever gave none means the resource as it is. Throws `aborted`.
 */
export async function untilWritten<T>(
  name: string,
  attempt: () => Promise<T | undefined>,
): Promise<T> {
  for (let round = 0; round < roundsMax; round += 1) {
    const written = await attempt();
    if (written !== undefined) return written;
  }
  throw aborted('TOO_BUSY', `${name} changes all the time; try again.`);
}
