/**
 * rackwright expected import: a manifest file against what is expected already.
 *
 * 1. Nothing is changed before every line has been tried: all problems are reported, each with its
 *    line.
 * 2. Expected machines that are not in the file stay.
 */
import { clone, equals, toJson } from '@bufbuild/protobuf';
import { ApiFailure, type ExpectedHost, ExpectedHostSchema } from '@rackwright/messages';
import { buildCommand } from '@stricli/core';
import type { CliContext, CommandIo } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { connectionFlags, outputFlag, type SharedFlags } from '../../flags.ts';
import { type ManifestLine, manifestBytesMax, parseManifest } from '../../manifest.ts';
import { printLines } from '../../output/show.ts';
import { allPages } from '../frame/calls.ts';
import { withDiscovery } from './discovered.ts';

type Client = Parameters<Parameters<typeof withDiscovery>[2]>[0];

/** The change that one line of the file asks for. */
interface Change {
  readonly kind: 'create' | 'update';
  readonly line: ManifestLine;
  readonly text: string;
}

const updateMask = { paths: ['match', 'labels', 'spec'] };

export const importExpected = buildCommand({
  docs: {
    brief: 'Read a manifest, YAML or CSV: shows the difference, then applies it',
    fullDescription:
      'YAML: defaults and a list of hosts; CSV: columns named in the first line. Fields are ' +
      'host, rack, serial, mac, matchBmc, bmc, credential, protocol, certificate, goal, labels. ' +
      'Hosts that are expected and not in the file stay.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      ...outputFlag,
      dryRun: { kind: 'boolean', default: false, brief: 'Only show the difference' },
    },
    positional: {
      kind: 'tuple',
      parameters: [{ parse: String, brief: 'The manifest', placeholder: 'file' }],
    },
    aliases: { o: 'output' },
  },
  async func(this: CliContext, flags: SharedFlags & { dryRun: boolean }, file: string) {
    const { io } = this;
    const lines = await readManifest(io, file);
    await withDiscovery(io, flags, async (discovery) => {
      const expected = await allPages(
        (pageToken) => discovery.listExpectedHosts({ pageToken }),
        (page) => page.expectedHosts,
      );
      const byName = new Map(expected.map((each) => [each.name, each]));
      const changes = lines.flatMap((line) => changeOf(line, byName) ?? []);
      printLines(
        io,
        changes.map(({ text }) => text),
      );
      await tryAll(io, discovery, changes, file);
      if (!flags.dryRun)
        for (const change of changes) await make(discovery, change, { validateOnly: false });
      printLines(io, [summary(lines, changes, flags.dryRun)]);
    });
  },
});

async function readManifest(io: CommandIo, file: string): Promise<readonly ManifestLine[]> {
  const bytes = await io.readFile(file);
  if (bytes === undefined) throw new UsageError(`${file} does not exist`);
  if (bytes.length > manifestBytesMax) {
    throw new UsageError(`${file} has ${bytes.length} bytes; at most ${manifestBytesMax} are read`);
  }
  const manifest = parseManifest(file, new TextDecoder().decode(bytes));
  if (manifest.kind === 'lines') return manifest.lines;
  return refuse(io, file, manifest.problems);
}

function refuse(
  io: CommandIo,
  file: string,
  problems: readonly { readonly line: number; readonly message: string }[],
): never {
  for (const { line, message } of problems) io.err.write(`${file}:${line}: ${message}\n`);
  throw new UsageError(`${file} cannot be taken in; nothing was changed`);
}

function changeOf(
  line: ManifestLine,
  byName: ReadonlyMap<string, ExpectedHost>,
): Change | undefined {
  const before = byName.get(`expectedHosts/${line.hostId}`);
  if (before === undefined) return { kind: 'create', line, text: `+ ${line.hostId}` };
  const next = clone(ExpectedHostSchema, before);
  Object.assign(next, {
    match: line.expected.match,
    labels: line.expected.labels,
    spec: line.expected.spec,
  });
  if (equals(ExpectedHostSchema, before, next)) return undefined;
  const texts = differences(toJson(ExpectedHostSchema, before), toJson(ExpectedHostSchema, next));
  return { kind: 'update', line, text: `~ ${line.hostId}: ${texts.join(', ')}` };
}

/** "match.serial a → b" for each text that differs. */
function differences(before: unknown, after: unknown): string[] {
  const [old, now] = [flat(before), flat(after)];
  const paths = new Set([...old.keys(), ...now.keys()]);
  return [...paths]
    .filter((path) => old.get(path) !== now.get(path))
    .map((path) => `${path} ${old.get(path) ?? 'none'} → ${now.get(path) ?? 'none'}`);
}

function flat(value: unknown, path = ''): Map<string, string> {
  if (typeof value !== 'object' || value === null) return new Map([[path, String(value)]]);
  const below = Object.entries(value).map(([key, each]) =>
    flat(each, path === '' ? key : `${path}.${key}`),
  );
  return new Map(below.flatMap((each) => [...each]));
}

async function tryAll(
  io: CommandIo,
  discovery: Client,
  changes: readonly Change[],
  file: string,
): Promise<void> {
  const problems: { line: number; message: string }[] = [];
  for (const change of changes) {
    try {
      await make(discovery, change, { validateOnly: true });
    } catch (error) {
      if (!(error instanceof ApiFailure) || error.error.kind === 'unavailable') throw error;
      problems.push({ line: change.line.line, message: error.message });
    }
  }
  if (problems.length > 0) refuse(io, file, problems);
}

async function make(
  discovery: Client,
  change: Change,
  { validateOnly }: { readonly validateOnly: boolean },
): Promise<void> {
  const { hostId, expected } = change.line;
  if (change.kind === 'create') {
    const request = { expectedHostId: hostId, expectedHost: expected, validateOnly };
    await discovery.createExpectedHost(request);
    return;
  }
  const expectedHost = clone(ExpectedHostSchema, expected);
  expectedHost.name = `expectedHosts/${hostId}`;
  await discovery.updateExpectedHost({ expectedHost, updateMask, validateOnly });
}

function summary(
  lines: readonly ManifestLine[],
  changes: readonly Change[],
  dryRun: boolean,
): string {
  const created = changes.filter(({ kind }) => kind === 'create').length;
  const changed = changes.length - created;
  const same = lines.length - changes.length;
  const text = `${created} new, ${changed} changed, ${same} as they were`;
  return dryRun ? `${text}; nothing was changed` : text;
}
