/**
 * For callers with a scope, images are fetched only from hosts that the fleet names among its
 * registries. Control plane and agents send requests to any host in an image name, and the kind of
 * error would reveal what listens there.
 */
import { permissionDenied } from '@rackwright/messages';
import { isUnscoped } from '../../access/index.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { readImageName, registryOf } from '../../images/index.ts';
import { readFleet } from '../index.ts';

/**
 * Throws `permissionDenied` where the caller has a scope and the fleet does not name the host of
 * `image`. An image name that cannot be parsed is refused elsewhere.
 */
export async function checkImageHost(
  { store, principal }: Pick<RpcDependencies, 'store' | 'principal'>,
  image: string,
  field: string,
): Promise<void> {
  const read = readImageName(image);
  if (read.kind === 'bad' || isUnscoped(principal.scope)) return;
  const { registry } = read.name;
  const registries = (await readFleet(store))?.fleet?.spec?.registries;
  if (registryOf(registries, registry) !== undefined) return;
  throw permissionDenied(
    'IMAGE_HOST_NOT_NAMED',
    `${field}: callers with a scope use only registries that the fleet names, and ${registry} is ` +
      `none of them. An administrator names it: rackwright fleet registry set ${registry}.`,
  );
}
