/** The hardware of a host as its runner saw it, beside what the BMC says. */
import {
  type Cable,
  type ComparedPart,
  type Cpu,
  cablesOf,
  counted,
  type Host,
  PartMatch,
  partKindText,
  partMatchText,
  partText,
  switchText,
} from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { useLive } from '../browser/hooks.ts';
import { hex, memoryText } from '../logic/format.ts';
import { Badge, Fields, Loading, Nothing, Panel, Time } from '../parts/basics.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { Table } from '../parts/table.tsx';

const cableColumns = [
  { title: 'Name', cell: ({ card }: Cable) => card.name },
  { title: 'MAC address', cell: ({ card }: Cable) => <code>{card.mac}</code> },
  {
    title: 'Link',
    cell: ({ card: { linkUp } }: Cable) => (
      <Badge tone={linkUp ? 'good' : 'calm'}>{linkUp ? 'up' : 'down'}</Badge>
    ),
  },
  {
    title: 'Speed',
    cell: ({ card: { speedMbps } }: Cable) => (speedMbps === 0 ? '–' : `${speedMbps} Mbit/s`),
    isNumber: true,
  },
  { title: 'Switch', cell: switchText },
  { title: 'Port', cell: ({ neighbor }: Cable) => neighbor?.portId ?? '' },
  { title: 'Port description', cell: ({ neighbor }: Cable) => neighbor?.portDescription ?? '' },
  { title: 'VLAN', cell: ({ neighbor }: Cable) => neighbor?.portVlan ?? '', isNumber: true },
  {
    title: 'Management',
    cell: ({ neighbor }: Cable) => neighbor?.managementAddresses.join(', ') ?? '',
    isMinor: true,
  },
];

const partColumns = [
  { title: 'Part', cell: partKindText },
  { title: 'As the host sees it', cell: ({ host }: ComparedPart) => partText(host) },
  { title: 'As the BMC lists it', cell: ({ bmc }: ComparedPart) => partText(bmc) },
  { title: 'Compared', cell: Compared },
];

function Compared(part: ComparedPart) {
  if (part.match === PartMatch.UNSPECIFIED) return <span class="quiet">not compared</span>;
  const tone = part.match === PartMatch.SAME ? 'good' : 'warn';
  return <Badge tone={tone}>{partMatchText(part)}</Badge>;
}

/** Both lists, a row for each part. A difference is information, no fault. */
function Parts({ name }: { readonly name: string }) {
  const { clients } = useConsole();
  const loaded = useLive(
    `inventory ${name}`,
    (signal) => clients.hosts.getHostInventory({ name }, { signal }),
    { isConcerned: ({ kind }) => kind === 'host' },
  );
  const { value, failure, reload } = loaded;
  if (value === undefined) {
    return failure === undefined ? (
      <Loading subject="Reading the hardware" />
    ) : (
      <FailureBox subject="The hardware cannot be compared" failure={failure} retry={reload} />
    );
  }
  return (
    <Panel title="Host and BMC">
      {value.parts.length === 0 ? (
        <Nothing>Neither host nor BMC has listed a part yet.</Nothing>
      ) : (
        <Table
          label="Parts as host and BMC list them"
          columns={partColumns}
          rows={value.parts}
          keyOf={(part) => `${part.kind} ${partText(part.host)} ${partText(part.bmc)}`}
        />
      )}
      {value.bmcGaps !== '' && <p class="quiet">Not compared: {value.bmcGaps}.</p>}
    </Panel>
  );
}

export function HostInventory({ host: { name, status } }: { readonly host: Host }) {
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
            columns={cableColumns}
            rows={cablesOf(inventory.interfaces)}
            keyOf={({ card, neighbor }) =>
              `${card.name} ${neighbor?.chassisId} ${neighbor?.portId}`
            }
          />
          <p class="quiet">
            Switches and ports were heard by LLDP. Whoever is on the cable can forge it: nothing is
            decided by it.
          </p>
        </Panel>
      )}
      <Parts name={name} />
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
