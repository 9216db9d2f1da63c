/** The hardware of a host as its runner saw it, beside what the BMC says. */
import { type Cpu, counted, type Host, type NetworkInterface } from '@rackwright/messages';
import { hex, memoryText } from '../logic/format.ts';
import { Badge, Fields, Nothing, Panel, Time } from '../parts/basics.tsx';
import { Table } from '../parts/table.tsx';

const interfaceColumns = [
  { title: 'Name', cell: ({ name }: NetworkInterface) => name },
  { title: 'MAC address', cell: ({ mac }: NetworkInterface) => <code>{mac}</code> },
  {
    title: 'Link',
    cell: ({ linkUp }: NetworkInterface) => (
      <Badge tone={linkUp ? 'good' : 'calm'}>{linkUp ? 'up' : 'down'}</Badge>
    ),
  },
  {
    title: 'Speed',
    cell: ({ speedMbps }: NetworkInterface) => (speedMbps === 0 ? '–' : `${speedMbps} Mbit/s`),
    isNumber: true,
  },
];

export function HostInventory({ host: { status } }: { readonly host: Host }) {
  const { inventory, bmcIdentity } = status ?? {};
  return (
    <>
      <div class="columns">
        <Panel title="System">
          {inventory === undefined ? (
            <Nothing>The host has not been inspected yet.</Nothing>
          ) : (
            <Fields
              rows={[
                { label: 'Manufacturer', value: inventory.system?.manufacturer },
                { label: 'Product', value: inventory.system?.product },
                { label: 'Serial', value: inventory.system?.serial },
                { label: 'UUID', value: inventory.system && hex(inventory.system.uuid) },
                { label: 'Asset tag', value: inventory.system?.assetTag },
                { label: 'Processors', value: cpusText(inventory.cpus) },
                { label: 'Memory', value: memoryText(inventory.memoryBytes) },
                { label: 'Seen', value: <Time at={inventory.collectedAt} /> },
              ]}
            />
          )}
        </Panel>
        <Panel title="BMC">
          {bmcIdentity === undefined ? (
            <Nothing>The BMC has not been verified yet.</Nothing>
          ) : (
            <Fields
              rows={[
                { label: 'Manufacturer', value: bmcIdentity.manufacturer },
                { label: 'Product', value: bmcIdentity.product },
                { label: 'Serial', value: bmcIdentity.serial },
                { label: 'GUID', value: hex(bmcIdentity.guid) },
                { label: 'Firmware', value: bmcIdentity.firmwareVersion },
                { label: 'Certificate (SHA-256)', value: bmcIdentity.certificateSha256 },
              ]}
            />
          )}
        </Panel>
      </div>
      {inventory !== undefined && (
        <Panel title="Network">
          <Table
            label="Network interfaces"
            columns={interfaceColumns}
            rows={inventory.interfaces}
            keyOf={({ name }) => name}
          />
        </Panel>
      )}
    </>
  );
}

/** "2 × EPYC 7543 (64 cores)" */
function cpusText(cpus: readonly Cpu[]): string {
  const [first] = cpus;
  if (first === undefined) return '';
  const cores = cpus.reduce((sum, { cores: each }) => sum + each, 0);
  return `${cpus.length} × ${first.model || 'processor'} (${counted(cores, 'core')})`;
}
