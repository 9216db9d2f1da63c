/** rackwright host inventory: the hardware as runner and BMC see it, and its cables. */
import { cablesOf, HostInventorySchema } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext } from '../../command-io.ts';
import { resourceName, type SharedFlags } from '../../flags.ts';
import { cableColumns, partColumns } from '../../output/inventory.ts';
import { isForPrograms, printAs, printLines, printTable } from '../../output/show.ts';
import { hostAliases as aliases, hostArgument, hostFlags, withHosts } from './client.ts';

export const hostInventory = buildCommand({
  docs: {
    brief: 'Show the hardware as host and BMC see it, and the switch ports it is cabled to',
    fullDescription:
      'What the last inspection found beside what the BMC listed then. A difference is ' +
      'information, no fault. What is not compared is listed by one side only, because the other ' +
      'side lists none of its kind, or not all. Switches are found by LLDP, and anybody on the ' +
      'cable can forge that.',
  },
  parameters: { flags: hostFlags, positional: hostArgument, aliases },
  async func(this: CliContext, flags: SharedFlags, id: string) {
    const { io } = this;
    const name = resourceName('hosts', id);
    const inventory = await withHosts(io, flags, (hosts) => hosts.getHostInventory({ name }));
    if (isForPrograms(flags.output)) {
      printAs(io, flags.output, HostInventorySchema, inventory);
      return;
    }
    if (inventory.inventory === undefined) printLines(io, [`${name} was not inspected yet`]);
    printTable(io, flags.output, partColumns, inventory.parts);
    if (inventory.bmcGaps !== '') printLines(io, ['', `Not compared: ${inventory.bmcGaps}.`]);
    const cables = cablesOf(inventory.inventory?.interfaces ?? []);
    if (cables.length === 0) return;
    printLines(io, ['']);
    printTable(io, flags.output, cableColumns, cables);
  },
});
