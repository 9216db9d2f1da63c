/** Brakes: what keeps destructive work from beginning, in a rack or everywhere. */

import type { Fleet, Freeze, Rack, WipeBudget } from '@rackwright/messages';
import { useState } from 'preact/hooks';
import { newRequestId } from '../browser/clock.ts';
import { useConsole } from '../browser/console.ts';
import { useLive, useTopic } from '../browser/hooks.ts';
import { idOf, span } from '../logic/format.ts';
import { isOffered } from '../logic/offers.ts';
import { Badge, Loading, PageHead, Panel, Resource, Time } from '../parts/basics.tsx';
import { AskDialog } from '../parts/dialog.tsx';
import { FailureBox } from '../parts/errors.tsx';
import { Table } from '../parts/table.tsx';

const racksShownMax = 1_000;

interface Brake {
  /** "fleet" or "racks/RACK" */
  readonly of: string;
  readonly isFrozen: boolean;
}

export function BrakesPage() {
  const { clients } = useConsole();
  useTopic({ kind: 'racks' });
  const [open, setOpen] = useState<Brake | undefined>(undefined);
  const { value, failure, reload } = useLive(
    'brakes',
    async (signal) => {
      const [fleet, listed] = await Promise.all([
        clients.fleet.getFleet({}, { signal }),
        clients.racks.listRacks({ pageSize: racksShownMax }, { signal }),
      ]);
      return { fleet, racks: listed.racks };
    },
    { isConcerned: () => true, everyMs: 10_000 },
  );
  if (value === undefined) {
    return failure === undefined ? (
      <Loading subject="Reading brakes" />
    ) : (
      <FailureBox subject="The brakes cannot be shown" failure={failure} retry={reload} />
    );
  }
  return (
    <>
      <PageHead title="Brakes" />
      <FleetBrake fleet={value.fleet} ask={setOpen} />
      <RackBrakes racks={value.racks} ask={setOpen} />
      {open !== undefined && (
        <BrakeDialog
          brake={open}
          close={() => {
            setOpen(undefined);
            reload();
          }}
        />
      )}
    </>
  );
}

type Ask = (brake: Brake) => void;

function FleetBrake({ fleet, ask }: { readonly fleet: Fleet; readonly ask: Ask }) {
  const { caller } = useConsole();
  const freeze = fleet.status?.freeze;
  const isFrozen = freeze !== undefined;
  const button = (
    <button
      type="button"
      class={isFrozen ? '' : 'danger'}
      onClick={() => ask({ of: 'fleet', isFrozen })}
    >
      {isFrozen ? 'Thaw the fleet …' : 'Freeze the fleet …'}
    </button>
  );
  return (
    <Panel
      title="Fleet"
      tone={isFrozen ? 'warn' : 'good'}
      actions={isOffered(caller, isFrozen ? 'thawFleet' : 'freezeFleet') && button}
    >
      <p>
        <FreezeText freeze={freeze} />
      </p>
      <p class="quiet">
        Wipe budget: {budgetText(fleet.spec?.wipeBudget)}. A freeze lets no new destructive work
        begin; what is under way ends.
      </p>
    </Panel>
  );
}

function RackBrakes({ racks, ask }: { readonly racks: readonly Rack[]; readonly ask: Ask }) {
  const { caller } = useConsole();
  const columns = [
    { title: 'Rack', cell: ({ name }: Rack) => <Resource name={name} /> },
    { title: 'Brake', cell: ({ status }: Rack) => <FreezeText freeze={status?.freeze} /> },
    { title: 'Wipe budget', cell: ({ spec }: Rack) => budgetText(spec?.wipeBudget), isMinor: true },
    {
      title: 'Runs at once',
      cell: ({ spec }: Rack) => spec?.limits?.runs ?? 'no limit',
      isMinor: true,
    },
    {
      title: 'Change',
      cell: ({ name, status }: Rack) => {
        const isFrozen = status?.freeze !== undefined;
        return (
          isOffered(caller, isFrozen ? 'thawRack' : 'freezeRack') && (
            <button type="button" onClick={() => ask({ of: name, isFrozen })}>
              {isFrozen ? 'Thaw …' : 'Freeze …'}
            </button>
          )
        );
      },
    },
  ];
  return (
    <Panel title="Racks">
      <Table label="Racks" columns={columns} rows={racks} keyOf={({ name }) => name} />
    </Panel>
  );
}

function FreezeText({ freeze }: { readonly freeze: Freeze | undefined }) {
  if (freeze === undefined) return <Badge tone="good">free</Badge>;
  return (
    <>
      <Badge tone="warn">frozen</Badge> {freeze.reason}{' '}
      <span class="quiet">
        by {freeze.by}, <Time at={freeze.at} />
      </span>
    </>
  );
}

const budgetSecondsUsual = 3_600;

function budgetText(budget: WipeBudget | undefined): string {
  if (budget === undefined) return 'no limit';
  return `${budget.hosts} hosts in ${span((budget.seconds ?? budgetSecondsUsual) * 1_000)}`;
}

function BrakeDialog({ brake, close }: { readonly brake: Brake; readonly close: () => void }) {
  const { clients } = useConsole();
  const { of, isFrozen } = brake;
  const verb = isFrozen ? 'Thaw' : 'Freeze';
  const act = (reason: string): Promise<unknown> => {
    const requestId = newRequestId();
    if (of === 'fleet') {
      const request = { reason, requestId };
      return isFrozen ? clients.fleet.thawFleet(request) : clients.fleet.freezeFleet(request);
    }
    const request = { name: of, reason, requestId };
    return isFrozen ? clients.racks.thawRack(request) : clients.racks.freezeRack(request);
  };
  const text = isFrozen
    ? 'Work that waits for this brake begins at once.'
    : 'No new destructive work begins; what is under way ends.';
  return (
    <AskDialog title={`${verb} ${idOf(of)}`} text={text} verb={verb} close={close} act={act} />
  );
}
