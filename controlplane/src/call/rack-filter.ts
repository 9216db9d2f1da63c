/** The rack that a list is limited to. */
import { notFound, type RackId, type RackName } from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { orUnavailable } from '../records/index.ts';
import { requireName } from './names.ts';

/**
 * Refuses a filter by a rack that does not exist: otherwise a mistyped name and a rack without
 * hosts would give the same empty list. Empty means every rack. Throws `invalidArgument` or
 * `notFound`.
 */
export async function checkRackFilter(store: StateStore, rack: RackName): Promise<void> {
  if (rack === '') return;
  if (!(await isRack(store, requireName('racks', rack, 'rack')))) throw notFound(rack);
}

/** Whether there is a rack of this id. */
export async function isRack(store: StateStore, rackId: RackId): Promise<boolean> {
  return (await orUnavailable(store.get(storeKey('racks', rackId)))).kind === 'found';
}
