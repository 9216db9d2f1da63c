/** The disks of a host, and the certificates of their erasures. */
import {
  type ErasureCertificate,
  enumWord,
  type Host,
  MediaTypeSchema,
  PowerCycleProof,
  type StorageDevice,
  TransportSchema,
} from '@rackwright/messages';
import { useConsole } from '../browser/console.ts';
import { usePages } from '../browser/more.ts';
import { bytesText } from '../logic/format.ts';
import { routeOf } from '../logic/route.ts';
import { Badge, Nothing, Panel, Time } from '../parts/basics.tsx';
import { More } from '../parts/more.tsx';
import { Table } from '../parts/table.tsx';

const diskColumns = [
  { title: 'Name', cell: ({ device }: StorageDevice) => device },
  { title: 'Model', cell: ({ model }: StorageDevice) => model },
  { title: 'Serial', cell: ({ serial, wwn }: StorageDevice) => <code>{serial || wwn}</code> },
  {
    title: 'Size',
    cell: ({ sizeBytes }: StorageDevice) => bytesText(sizeBytes),
    isNumber: true,
  },
  {
    title: 'Kind',
    cell: ({ transport, mediaType }: StorageDevice) =>
      [enumWord(TransportSchema, transport), enumWord(MediaTypeSchema, mediaType)]
        .filter(Boolean)
        .join(', '),
    isMinor: true,
  },
  {
    title: 'Health',
    cell: ({ health }: StorageDevice) =>
      health?.passed === undefined ? (
        <span class="quiet">not told</span>
      ) : (
        <Badge tone={health.passed ? 'good' : 'bad'}>{health.passed ? 'passed' : 'failing'}</Badge>
      ),
    isMinor: true,
  },
];

const certificateColumns = (useEpoch: bigint) => [
  {
    title: 'Certificate',
    cell: ({ name, deviceModel, deviceSerial }: ErasureCertificate) => (
      <a href={routeOf(name)}>{`${deviceModel} ${deviceSerial}`.trim()}</a>
    ),
  },
  { title: 'Erased', cell: ({ createTime }: ErasureCertificate) => <Time at={createTime} /> },
  {
    title: 'Level',
    cell: ({ level }: ErasureCertificate) => (
      <Badge tone={level === '' ? 'bad' : 'good'}>{level || 'not proved'}</Badge>
    ),
  },
  { title: 'Method', cell: ({ method }: ErasureCertificate) => method, isMinor: true },
  {
    title: 'Use',
    cell: ({ useEpoch: own }: ErasureCertificate) =>
      own === useEpoch ? 'this one' : `an earlier one (${own})`,
    isMinor: true,
  },
  {
    title: 'After a power cycle',
    cell: ({ powerCycleProof }: ErasureCertificate) => <PowerCycle proof={powerCycleProof} />,
    isMinor: true,
  },
];

export function PowerCycle({ proof }: { readonly proof: PowerCycleProof }) {
  switch (proof) {
    case PowerCycleProof.PROVED:
      return <Badge tone="good">still erased</Badge>;
    case PowerCycleProof.REFUTED:
      return <Badge tone="bad">data came back: revoked</Badge>;
    default:
      return <span class="quiet">not read again yet</span>;
  }
}

export function HostDisks({ host }: { readonly host: Host }) {
  const { clients } = useConsole();
  const { name, status } = host;
  const devices = status?.inventory?.devices ?? [];
  const listed = usePages<ErasureCertificate>(
    `certificates ${name}`,
    (certificate) => certificate.name,
    async (pageToken, signal) => {
      const request = { host: name, pageToken, pageSize: 100 };
      const page = await clients.erasures.listErasureCertificates(request, { signal });
      return { rows: page.erasureCertificates, next: page.nextPageToken };
    },
    { isConcerned: ({ kind }) => kind === 'host' },
  );
  return (
    <>
      <Panel title="Disks">
        {devices.length === 0 ? (
          <Nothing>No inventory has named a disk yet.</Nothing>
        ) : (
          <Table
            label="Disks"
            columns={diskColumns}
            rows={devices}
            keyOf={({ device }) => device}
          />
        )}
      </Panel>
      <Panel title="Certificates of erasure">
        <More subject="The certificates cannot be listed" listed={listed}>
          {listed.rows.length === 0 ? (
            <Nothing>No disk of this host has been erased yet.</Nothing>
          ) : (
            <Table
              label="Certificates of erasure"
              columns={certificateColumns(status?.useEpoch ?? 0n)}
              rows={listed.rows}
              keyOf={(certificate) => certificate.name}
            />
          )}
        </More>
      </Panel>
    </>
  );
}
