/** GetHostInventory: the hardware of a host as its runner and its BMC last reported it. */
import type { MessageInitShape } from '@bufbuild/protobuf';
import { type HostInventorySchema, notFound } from '@rackwright/messages';
import { readFacts, readHost } from '../../call/host-view.ts';
import { requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { comparedParts, gapsOfBmc } from '../index.ts';

export async function getHostInventory(
  deps: RpcDependencies,
  name: string,
): Promise<MessageInitShape<typeof HostInventorySchema>> {
  const hostId = requireName('hosts', name);
  const [found, kept] = [await readHost(deps, hostId), await readFacts(deps, hostId)];
  if (found === undefined) throw notFound(name);
  // Facts of another uid belong to a predecessor.
  const facts = kept?.hostUid === found.host.uid ? kept : undefined;
  const { inventory, bmcDrives, bmcParts } = facts ?? {};
  const views = { inventory, bmcDrives, bmcParts };
  return {
    name,
    ...(inventory === undefined ? {} : { inventory }),
    parts: comparedParts(views),
    bmcGaps: gapsOfBmc(views),
  };
}
