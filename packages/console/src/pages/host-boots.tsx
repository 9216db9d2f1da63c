/** The last boots of a host over the network, each as a waterfall. */
import { BootStepKind, type BootTrace, bootText, type Host } from '@rackwright/messages';
import { type BootRow, bootRows } from '../logic/boots.ts';
import { bytesText, grouped } from '../logic/format.ts';
import { Nothing, Panel, Time } from '../parts/basics.tsx';
import { LastScreen } from '../parts/last-screen.tsx';
import { Table } from '../parts/table.tsx';

const columns = [
  { title: 'Step', cell: ({ stage }: BootRow) => stage },
  { title: 'By', cell: ({ by }: BootRow) => by },
  { title: 'After', cell: ({ fromMs }: BootRow) => secondsText(fromMs), isNumber: true },
  { title: 'Done after', cell: ({ toMs }: BootRow) => secondsText(toMs), isNumber: true },
  { title: 'Course', cell: Bar, isMinor: true },
  {
    title: 'Sent',
    cell: ({ bytes }: BootRow) => (bytes === 0n ? '–' : bytesText(bytes)),
    isNumber: true,
  },
  { title: 'Times', cell: ({ count }: BootRow) => grouped(count), isNumber: true },
  { title: 'Problem', cell: ({ problem }: BootRow) => problem },
];

export function HostBoots({ host: { status } }: { readonly host: Host }) {
  const boots = status?.boots ?? [];
  if (boots.length === 0) {
    return (
      <Panel title="Boots over the network">
        <Nothing>No boot of this host into the runner is known.</Nothing>
      </Panel>
    );
  }
  return (
    <>
      {boots.map((boot) => (
        <Boot key={boot.operationId} boot={boot} />
      ))}
      <p class="quiet">
        As the agent of the rack saw them. Neighbours on the provisioning network can forge this:
        nothing is decided by it.
      </p>
    </>
  );
}

function Boot({ boot }: { readonly boot: BootTrace }) {
  const tone = boot.missing === BootStepKind.UNSPECIFIED ? 'good' : 'bad';
  return (
    <Panel title={bootText(boot)} tone={tone}>
      <p class="quiet">
        Let boot <Time at={boot.startTime} />
        {boot.mac !== '' && (
          <>
            {' '}
            from <code>{boot.mac}</code>
          </>
        )}
      </p>
      <Table
        label={`Steps of the boot: ${bootText(boot)}`}
        columns={columns}
        rows={bootRows(boot)}
        keyOf={({ stage, fromMs }) => `${stage} ${fromMs}`}
      />
      <LastScreen lines={boot.lastScreen} />
    </Panel>
  );
}

function Bar({ fromPercent, percent, problem }: BootRow) {
  return (
    <svg class="course" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">
      <rect class="ground" width="100" height="4" />
      <rect
        class={`fill ${problem === '' ? 'busy' : 'bad'}`}
        x={fromPercent}
        width={percent}
        height="4"
      />
    </svg>
  );
}

/** "12.3 s" */
function secondsText(ms: number | undefined): string {
  return ms === undefined ? '–' : `${(ms / 1_000).toFixed(1)} s`;
}
