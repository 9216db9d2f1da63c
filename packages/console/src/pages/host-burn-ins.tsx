/** The last burn-in of each kind of a host. */
import { type BurnIn, burnInLines, burnInName, burnInText, type Host } from '@rackwright/messages';
import { Badge, Panel, Time } from '../parts/basics.tsx';
import { Table } from '../parts/table.tsx';

const columns = [
  { title: 'What', cell: burnInName },
  {
    title: 'Result',
    cell: ({ passed }: BurnIn) => (
      <Badge tone={passed ? 'good' : 'bad'}>{passed ? 'passed' : 'failed'}</Badge>
    ),
  },
  {
    title: 'Found',
    cell: (burnIn: BurnIn) => [burnInText(burnIn), ...burnInLines(burnIn)].join('; '),
  },
  { title: 'When', cell: ({ endTime }: BurnIn) => <Time at={endTime} /> },
];

/** Nothing for a host that was never burnt in. */
export function HostBurnIns({ host: { status } }: { readonly host: Host }) {
  const { burnIns = [] } = status ?? {};
  if (burnIns.length === 0) return null;
  return (
    <Panel title="Burn-ins">
      <Table
        label="Last burn-in of each kind"
        columns={columns}
        rows={burnIns}
        keyOf={burnInName}
      />
    </Panel>
  );
}
