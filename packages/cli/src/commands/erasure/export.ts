/** rackwright erasure export: many certificates as files, by rack, label and time. */
import { type Timestamp, timestampMs } from '@bufbuild/protobuf/wkt';
import { counted, ErasureCertificateService, HostService } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { connectionFlags, parseLabels, resourceName } from '../../flags.ts';
import { printLines } from '../../output/show.ts';
import type { ConnectionFlags } from '../../settings.ts';
import { allPages, callsOf } from '../frame/calls.ts';
import { pastFlag, rangeOf } from '../frame/past-time.ts';

const withErasures = callsOf(ErasureCertificateService);
const withHosts = callsOf(HostService);

interface ExportFlags extends ConnectionFlags {
  readonly folder: string;
  readonly rack?: string;
  readonly selector?: readonly string[];
  readonly since?: string;
  readonly until?: string;
}

export const exportErasures = buildCommand({
  docs: {
    brief: 'Write many certificates to files: by rack, label and time',
    fullDescription:
      'Writes ID.json and ID.json.sig for each certificate, and trust.pem, into a folder that ' +
      'exists; manifests, addenda and revocations too, whenever they were made. Without --rack ' +
      'and --selector also of hosts that are gone. ' +
      '"erasure verify" and "erasure print" take the files.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      folder: { kind: 'parsed', parse: String, brief: 'Where to write', placeholder: 'folder' },
      rack: { kind: 'parsed', parse: String, optional: true, brief: 'Only of hosts of this rack' },
      selector: {
        kind: 'parsed',
        parse: String,
        variadic: true,
        optional: true,
        brief: 'Only of hosts with this label, NAME=VALUE; may be repeated',
        placeholder: 'name=value',
      },
      since: pastFlag('Made then or later: 2026-01-31T12:00:00Z, or 2h for two hours ago'),
      until: pastFlag('Made before then'),
    },
  },
  async func(this: CliContext, flags: ExportFlags) {
    const { io } = this;
    const { startTime, endTime } = rangeOf(io.clock, flags);
    const fromMs = startTime === undefined ? Number.NEGATIVE_INFINITY : timestampMs(startTime);
    const toMs = endTime === undefined ? Number.POSITIVE_INFINITY : timestampMs(endTime);
    const chosen = await chosenHosts(io, flags);
    const isChosen = (host: string) => chosen === undefined || chosen.has(host);
    const written = await withErasures(io, flags, async (erasures) => {
      const trust = await erasures.getTrust({});
      const pem = new TextEncoder().encode(trust.erasurePublicKeyPem);
      await io.writeFile(`${flags.folder}/trust.pem`, pem);
      const inTime = ({ createTime }: SignedStatement) => {
        const atMs = createTime === undefined ? Number.NaN : timestampMs(createTime);
        return atMs >= fromMs && atMs < toMs;
      };
      const certificates = await writeAll(io, flags.folder, async (pageToken) => {
        const page = await erasures.listErasureCertificates({ pageToken });
        const wanted = page.erasureCertificates.filter(({ host }) => isChosen(host));
        return { signed: wanted.filter(inTime), nextPageToken: page.nextPageToken };
      });
      // Of any time: a later addendum or revocation counts for a certificate.
      const documents = await writeAll(io, flags.folder, async (pageToken) => {
        const page = await erasures.listErasureDocuments({ pageToken });
        const wanted = page.erasureDocuments.filter(({ host }) => isChosen(host));
        return { signed: wanted, nextPageToken: page.nextPageToken };
      });
      return `${counted(certificates, 'certificate')} and ${counted(documents, 'document')}`;
    });
    printLines(io, [`${written} written to ${flags.folder}`]);
  },
});

interface SignedStatement {
  readonly name: string;
  readonly createTime?: Timestamp | undefined;
  readonly statement: Uint8Array;
  readonly signature: Uint8Array;
}

/** Page by page: all certificates of a fleet need not fit into memory. Answers how many. */
async function writeAll(
  io: CommandIo,
  folder: string,
  fetch: (
    pageToken: string,
  ) => Promise<{ signed: readonly SignedStatement[]; nextPageToken: string }>,
): Promise<number> {
  let count = 0;
  let pageToken = '';
  do {
    const page = await fetch(pageToken);
    for (const { name, statement, signature } of page.signed) {
      const path = `${folder}/${name.replace(/^.*\//, '')}.json`;
      await io.writeFile(path, statement);
      await io.writeFile(`${path}.sig`, signature);
      count += 1;
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  return count;
}

/** Names of the requested hosts; undefined: all, also removed ones. */
async function chosenHosts(
  io: CommandIo,
  flags: ExportFlags,
): Promise<ReadonlySet<string> | undefined> {
  const { rack, selector } = flags;
  if (rack === undefined && selector === undefined) return undefined;
  const labels = Object.entries(parseLabels(selector ?? []));
  const inRack = rack === undefined ? '' : resourceName('racks', rack);
  const hosts = await withHosts(io, flags, (client) =>
    allPages(
      (pageToken) => client.listHosts({ pageToken, rack: inRack }),
      (page) => page.hosts,
    ),
  );
  const fitting = hosts.filter((host) => labels.every(([key, is]) => host.labels[key] === is));
  return new Set(fitting.map(({ name }) => name));
}
