/** Machines that booted from the network and are no hosts yet, and those that are expected. */

import type { DiscoveredMachine, ExpectedHost } from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { useTopic } from '../browser/hooks.ts';
import { usePages } from '../browser/more.ts';
import { bytesText, idOf, memoryText } from '../logic/format.ts';
import { isOffered } from '../logic/offers.ts';
import { Badge, Nothing, PageHead, Panel, Resource, Time } from '../parts/basics.tsx';
import { Dialog, useAction } from '../parts/dialog.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { More } from '../parts/more.tsx';
import { Table } from '../parts/table.tsx';

const fresh = { everyMs: 5_000 };

/** What is about to be done with a machine. */
interface OpenedDialog {
  readonly act: 'accept' | 'drop';
  readonly machine: DiscoveredMachine;
}

export function DiscoveryPage() {
  const { clients, caller } = useConsole();
  useTopic({ kind: 'racks' });
  const [open, setOpen] = useState<OpenedDialog | undefined>(undefined);
  const listed = usePages<DiscoveredMachine>(
    'discovered',
    ({ name }) => name,
    async (pageToken, signal) => {
      const page = await clients.discovery.listDiscoveredMachines({ pageToken }, { signal });
      return { rows: page.discoveredMachines, next: page.nextPageToken };
    },
    fresh,
  );
  const may = { accept: isOffered(caller, 'accept'), drop: isOffered(caller, 'drop') };
  const columns = machineColumns(may, setOpen);
  const close = () => {
    setOpen(undefined);
    listed.reload();
  };
  return (
    <>
      <PageHead title="Discovery" />
      <Panel title="Machines that nobody knows">
        <More subject="The machines cannot be listed" listed={listed}>
          {listed.rows.length === 0 ? (
            <Nothing>
              No machine waits to be accepted. Racks list them once{' '}
              <code>rackwright rack discovery</code> is on.
            </Nothing>
          ) : (
            <Table
              label="Machines that nobody knows"
              columns={columns}
              rows={listed.rows}
              keyOf={({ name }) => name}
            />
          )}
        </More>
      </Panel>
      <Expected />
      {open?.act === 'accept' && <AcceptDialog machine={open.machine} close={close} />}
      {open?.act === 'drop' && <DropDialog machine={open.machine} close={close} />}
    </>
  );
}

function machineColumns(
  may: Readonly<Record<OpenedDialog['act'], boolean>>,
  open: (opened: OpenedDialog) => void,
) {
  return [
    { title: 'Machine', cell: (machine: DiscoveredMachine) => <Machine machine={machine} /> },
    { title: 'Rack', cell: ({ rack }: DiscoveredMachine) => <Resource name={rack} /> },
    {
      title: 'Booted from',
      cell: ({ bootMac }: DiscoveredMachine) => <code>{bootMac}</code>,
      isMinor: true,
    },
    { title: 'BMC', cell: ({ bmcAddress }: DiscoveredMachine) => bmcAddress || '–' },
    { title: 'Why not taken', cell: ({ notAccepted }: DiscoveredMachine) => notAccepted },
    {
      title: 'Seen',
      cell: ({ lastSeenTime }: DiscoveredMachine) => <Time at={lastSeenTime} />,
      isMinor: true,
    },
    {
      title: 'Take it',
      cell: (machine: DiscoveredMachine) => (
        <>
          {may.accept && (
            <button type="button" onClick={() => open({ act: 'accept', machine })}>
              Accept …
            </button>
          )}{' '}
          {may.drop && (
            <button type="button" class="plain" onClick={() => open({ act: 'drop', machine })}>
              Drop …
            </button>
          )}
        </>
      ),
    },
  ];
}

function Machine({
  machine: { inventory, name, remarks },
}: {
  readonly machine: DiscoveredMachine;
}) {
  const { system } = inventory ?? {};
  const product = [system?.manufacturer, system?.product].filter(Boolean).join(' ');
  const disks = inventory?.devices ?? [];
  const size = disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  return (
    <>
      <strong>{product || idOf(name)}</strong> <code>{system?.serial}</code>
      <br />
      <span class="quiet">
        {inventory && memoryText(inventory.memoryBytes)}, {disks.length} disks ({bytesText(size)})
      </span>
      {remarks.map((remark) => (
        <p key={remark} class="waiting">
          {remark}
        </p>
      ))}
    </>
  );
}

const expectedColumns = [
  { title: 'Host', cell: ({ name }: ExpectedHost) => idOf(name) },
  {
    title: 'Known by',
    cell: ({ match }: ExpectedHost) =>
      [match?.serial, match?.mac, match?.bmcAddress].filter(Boolean).join(', '),
  },
  {
    title: 'State',
    cell: ({ host, conflict }: ExpectedHost) =>
      conflict === '' ? (
        host === '' ? (
          <Badge tone="calm">expected</Badge>
        ) : (
          <Badge tone="good">came</Badge>
        )
      ) : (
        <Badge tone="bad">{conflict}</Badge>
      ),
  },
  { title: 'Became', cell: ({ host }: ExpectedHost) => <Resource name={host} /> },
];

function Expected() {
  const { clients } = useConsole();
  const listed = usePages<ExpectedHost>(
    'expected',
    ({ name }) => name,
    async (pageToken, signal) => {
      const page = await clients.discovery.listExpectedHosts({ pageToken }, { signal });
      return { rows: page.expectedHosts, next: page.nextPageToken };
    },
    fresh,
  );
  return (
    <Panel title="Expected hosts">
      <More subject="The expected hosts cannot be listed" listed={listed}>
        {listed.rows.length === 0 ? (
          <Nothing>
            Nothing is expected. A manifest says what will come:{' '}
            <code>rackwright expected import FILE</code>.
          </Nothing>
        ) : (
          <Table
            label="Expected hosts"
            columns={expectedColumns}
            rows={listed.rows}
            keyOf={({ name }) => name}
          />
        )}
      </More>
    </Panel>
  );
}

interface MachineDialogProps {
  readonly machine: DiscoveredMachine;
  readonly close: () => void;
}

function AcceptDialog({ machine, close }: MachineDialogProps) {
  const { clients } = useConsole();
  const { failure, isBusy, run } = useAction();
  const [hostId, setHostId] = useState('');
  const [address, setAddress] = useState(machine.bmcAddress);
  const [credential, setCredential] = useState('');
  const submit = async (event: Event) => {
    event.preventDefault();
    const bmc = { address, credential: credential === '' ? '' : `credentials/${credential}` };
    const { name, etag } = machine;
    const request = { name, etag, hostId, host: { spec: { bmc } }, requestId: newRequestId() };
    if (await run(() => clients.discovery.acceptDiscoveredMachine(request))) close();
  };
  return (
    <Dialog title="Accept the machine as a host" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>By its goal the host is verified, inspected and wiped.</p>
        <Input label="Name of the host" value={hostId} set={setHostId} />
        <Input label="Address of its BMC" value={address} set={setAddress} />
        <Input label="Credential" value={credential} set={setCredential} />
        {failure !== undefined && <FailureBox subject="It was not accepted" failure={failure} />}
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy || hostId === ''}>
            Accept
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

function DropDialog({ machine, close }: MachineDialogProps) {
  const { clients } = useConsole();
  const { failure, isBusy, run } = useAction();
  const { name, etag, inventory } = machine;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await run(() => clients.discovery.deleteDiscoveredMachine({ name, etag }))) close();
  };
  return (
    <Dialog title="Drop the machine from the list" close={close}>
      <form onSubmit={(event) => void submit(event)}>
        <p>
          Machine <code>{inventory?.system?.serial || idOf(name)}</code> is forgotten. It is listed
          again when it boots again.
        </p>
        {failure !== undefined && <FailureBox subject="It was not dropped" failure={failure} />}
        <footer>
          <button type="button" onClick={close}>
            Cancel
          </button>
          <button type="submit" class="primary" disabled={isBusy}>
            Drop
          </button>
        </footer>
      </form>
    </Dialog>
  );
}

interface InputProps {
  readonly label: string;
  readonly value: string;
  readonly set: (value: string) => void;
}

function Input({ label, value, set }: InputProps) {
  return (
    <label>
      {label}
      <input
        value={value}
        spellcheck={false}
        autoComplete="off"
        onInput={(event) => set(event.currentTarget.value.trim())}
      />
    </label>
  );
}
