/** Whether the inventory names the port of a switch that a machine is cabled to. */
import type { LabMachine } from './qemu.ts';
import type { Site } from './site.ts';
import { portOf, SWITCH } from './switch.ts';

/** An inventory, as the API shows it in JSON; what is empty is absent. */
interface InventoryView {
  readonly inventory?: {
    readonly interfaces?: readonly {
      readonly mac?: string;
      readonly neighbors?: readonly { readonly [field: string]: unknown }[];
    }[];
  };
}

/** The host's inventory names the switch and the port of its cable, and nobody else. */
export async function checkCable({ stack, findings }: Site, machine: LabMachine): Promise<void> {
  const shown = await stack.cli(['host', 'inventory', machine.name, '-o', 'json']);
  const { interfaces = [] } = (JSON.parse(shown) as InventoryView).inventory ?? {};
  const heard = interfaces.find(({ mac }) => mac === machine.mac)?.neighbors ?? [];
  const port = portOf(machine);
  const [neighbor, ...others] = heard;
  const isNamed =
    neighbor?.['chassisId'] === SWITCH.chassisId &&
    neighbor['systemName'] === SWITCH.systemName &&
    neighbor['portId'] === port;
  const title = `its inventory names switch ${SWITCH.systemName}, port ${port}`;
  findings.check(title, isNamed && others.length === 0, JSON.stringify(heard));
}
