/**
 * The manifest of hosts to come, as a file: YAML or CSV. Pure: text in, lines or problems out.
 *
 *     defaults: { rack: r1, credential: bmc1, protocol: redfish }     host,serial,mac,bmc
 *     hosts:                                                          h1,SN-1,,10.0.0.21
 *       - { host: h1, serial: SN-1, bmc: 10.0.0.21 }                  h2,,52:54:00:00:00:02,
 *       - { host: h2, mac: "52:54:00:00:00:02", labels: { role: db } }
 *
 * serial, mac and matchBmc say which machine it is; bmc is where its BMC is reached, and may be
 * left out where the machine says it itself. CSV names its columns in the first line; labels are
 * written as "role=db;site=a" there.
 *
 * M1 All problems are reported at once, each with its line.
 */
import { create } from '@bufbuild/protobuf';
import {
  BmcProtocol,
  type BmcProtocolId,
  type ExpectedHost,
  ExpectedHostSchema,
  HostGoal,
  type HostId,
  HostSpecSchema,
  ShutdownMode,
  type ShutdownPolicy,
  ShutdownPolicySchema,
} from '@rackwright/messages';
import { isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import { parseEndpoint } from './commands/host/spec.ts';
import { writtenAs, YamlText } from './files/yaml.ts';
import { resourceName } from './flags.ts';

export interface ManifestProblem {
  /** From 1. */
  readonly line: number;
  readonly message: string;
}

export interface ManifestLine {
  readonly line: number;
  readonly hostId: HostId;
  /** Match, labels and spec. */
  readonly expected: ExpectedHost;
}

export type ManifestResult =
  | { readonly kind: 'lines'; readonly lines: readonly ManifestLine[] }
  | { readonly kind: 'bad'; readonly problems: readonly ManifestProblem[] };

export const manifestBytesMax = 4 * 1024 * 1024;
const linesMax = 10_000;
const problemsMax = 50;

const fields = [
  'host',
  'rack',
  'serial',
  'mac',
  'matchBmc',
  'bmc',
  'credential',
  'protocol',
  'certificate',
  'goal',
  'shutdown',
  'shutdownTimeout',
  'labels',
] as const;
type LineField = (typeof fields)[number];

/** The fields of one line, all as text; labels apart. */
interface Row {
  readonly line: number;
  readonly values: Partial<Record<Exclude<LineField, 'labels'>, string>>;
  readonly labels: Readonly<Record<string, string>>;
}

class Problems {
  readonly found: ManifestProblem[] = [];

  add(line: number, message: string): void {
    if (this.found.length < problemsMax) this.found.push({ line, message });
  }
}

/** Reads the text of a file; its name tells CSV from YAML. */
export function parseManifest(fileName: string, text: string): ManifestResult {
  const problems = new Problems();
  const rows = fileName.toLowerCase().endsWith('.csv')
    ? readCsv(text, problems)
    : readYaml(text, problems);
  if (rows.length > linesMax) problems.add(1, `has ${rows.length} hosts; at most ${linesMax}`);
  const lines = rows.slice(0, linesMax).flatMap((row) => lineOf(row, problems) ?? []);
  const first = new Map<HostId, number>();
  for (const { hostId, line } of lines) {
    const before = first.get(hostId);
    if (before !== undefined) problems.add(line, `repeats the host ${hostId} of line ${before}`);
    else first.set(hostId, line);
  }
  const { found } = problems;
  if (found.length === 0) return { kind: 'lines', lines };
  return { kind: 'bad', problems: found.toSorted((a, b) => a.line - b.line) };
}

function lineOf({ line, values, labels }: Row, problems: Problems): ManifestLine | undefined {
  const { host = '', rack, serial = '', mac = '', matchBmc = '', protocol, goal } = values;
  if (host === '') problems.add(line, 'names no host');
  if (serial === '' && mac === '' && matchBmc === '') {
    problems.add(line, 'does not say which machine it is: give serial, mac or matchBmc');
  }
  const spec = create(HostSpecSchema, {
    rack: rack === undefined ? '' : resourceName('racks', rack),
    bmc: values.bmc === undefined ? {} : parseEndpoint(values.bmc),
  });
  const { bmc } = spec;
  if (bmc !== undefined) {
    const { credential, certificate = '' } = values;
    bmc.credential = credential === undefined ? '' : resourceName('credentials', credential);
    bmc.certificateSha256 = certificate.toLowerCase().replaceAll(':', '');
    if (protocol !== undefined) bmc.protocol = wordOf(protocols, protocol, line, problems) ?? 0;
  }
  if (goal !== undefined) spec.goal = wordOf(goals, goal, line, problems) ?? 0;
  const shutdown = shutdownOf(values, line, problems);
  if (shutdown !== undefined) spec.shutdown = shutdown;
  if (rack === undefined) problems.add(line, 'names no rack; give it here or in defaults');
  const match = { serial, mac: mac.toLowerCase().replaceAll('-', ':'), bmcAddress: matchBmc };
  const expected = create(ExpectedHostSchema, { match, labels: { ...labels }, spec });
  return { line, hostId: host, expected };
}

function shutdownOf(
  { shutdown, shutdownTimeout }: Row['values'],
  line: number,
  problems: Problems,
): ShutdownPolicy | undefined {
  if (shutdown === undefined && shutdownTimeout === undefined) return undefined;
  const policy = create(ShutdownPolicySchema, {});
  if (shutdown !== undefined) policy.mode = wordOf(shutdownModes, shutdown, line, problems) ?? 0;
  if (shutdownTimeout === undefined) return policy;
  if (/^\d{1,9}$/.test(shutdownTimeout)) policy.timeoutSeconds = Number(shutdownTimeout);
  else problems.add(line, `has "${shutdownTimeout}" as shutdownTimeout; it must be whole seconds`);
  return policy;
}

const protocols: Readonly<Record<BmcProtocolId, BmcProtocol>> = {
  ipmi: BmcProtocol.IPMI,
  redfish: BmcProtocol.REDFISH,
  webhook: BmcProtocol.WEBHOOK,
  manual: BmcProtocol.MANUAL,
};
const shutdownModes = { graceful: ShutdownMode.GRACEFUL, force: ShutdownMode.FORCE } as const;
const goals = { available: HostGoal.AVAILABLE, manageable: HostGoal.MANAGEABLE } as const;

function wordOf<T>(
  words: Readonly<Record<string, T>>,
  word: string,
  line: number,
  problems: Problems,
): T | undefined {
  const meant = Object.entries(words).find(([each]) => each === word)?.[1];
  if (meant !== undefined) return meant;
  problems.add(line, `has "${word}"; it must be ${Object.keys(words).join(' or ')}`);
  return undefined;
}

/** RFC 4180, with the line that each record begins at. */
function readCsv(text: string, problems: Problems): Row[] {
  const [header, ...records] = csvRecords(text, problems);
  if (header === undefined) {
    problems.add(1, `is empty; the first line names the columns: ${fields.join(', ')}`);
    return [];
  }
  const columns = header.cells.map((cell) => cell.trim());
  for (const name of columns) {
    if (isField(name)) continue;
    problems.add(header.line, `has the column "${name}"; known are ${fields.join(', ')}`);
  }
  return records.map(({ line, cells }) => {
    if (cells.length !== columns.length) {
      problems.add(line, `has ${cells.length} columns; the first line has ${columns.length}`);
    }
    const values: Row['values'] = {};
    let labels: Record<string, string> = {};
    for (const [index, name] of columns.entries()) {
      const cell = cells[index]?.trim() ?? '';
      if (cell === '' || !isField(name)) continue;
      if (name === 'labels') labels = labelsIn(cell, line, problems);
      else values[name] = cell;
    }
    return { line, values, labels };
  });
}

function labelsIn(cell: string, line: number, problems: Problems): Record<string, string> {
  const pairs = cell.split(';').flatMap((pair) => {
    const [, name, value] = /^\s*([^=]+)=(.*)$/.exec(pair) ?? [];
    if (name !== undefined && value !== undefined) return [[name.trim(), value.trim()] as const];
    problems.add(line, `has the label "${pair}"; it must be NAME=VALUE`);
    return [];
  });
  return Object.fromEntries(pairs);
}

interface CsvRecord {
  readonly line: number;
  readonly cells: string[];
}

function csvRecords(text: string, problems: Problems): CsvRecord[] {
  const records: CsvRecord[] = [];
  let line = 1;
  let begun = 1;
  let cells: string[] = [];
  let cell = '';
  let quoted = false;
  const endRecord = (): void => {
    cells.push(cell);
    if (cells.some((each) => each.trim() !== '')) records.push({ line: begun, cells });
    cells = [];
    cell = '';
    begun = line + 1;
  };
  const body = text.replace(/^\uFEFF/, '').replaceAll('\r\n', '\n');
  for (let at = 0; at < body.length; at += 1) {
    const character = body[at] ?? '';
    if (quoted && character === '"' && body[at + 1] === '"') {
      cell += '"';
      at += 1;
    } else if (character === '"' && (quoted || cell === '')) quoted = !quoted;
    else if (character === ',' && !quoted) {
      cells.push(cell);
      cell = '';
    } else if (character === '\n' && !quoted) {
      endRecord();
      line += 1;
    } else {
      cell += character;
      if (character === '\n') line += 1;
    }
  }
  if (quoted) problems.add(begun, 'has a quoted text without its end');
  if (cell !== '' || cells.length > 0) endRecord();
  return records;
}

function isField(name: string): name is LineField {
  return fields.some((each) => each === name);
}

function readYaml(text: string, problems: Problems): Row[] {
  const yaml = new YamlText(text, manifestBytesMax);
  const rows = rowsOf(yaml);
  for (const { line, message } of yaml.problems) problems.add(line, message);
  return rows;
}

function rowsOf(yaml: YamlText): Row[] {
  const [root, another] = yaml.documents();
  if (!yaml.isSound) return [];
  if (another !== undefined) yaml.wrong(another, 'is another document; one is read');
  let hosts: Node | null = null;
  let defaults: Row | undefined;
  for (const [name, key, value] of isMap(root) ? yaml.entries(root) : []) {
    if (name === 'hosts') hosts = value;
    else if (name === 'defaults' && isMap(value)) defaults = rowOf(value, yaml);
    else if (name === 'defaults') yaml.wrong(key, 'defaults must be fields with values');
    else yaml.wrong(key, `has "${name}"; known are defaults and hosts`);
  }
  if (!isSeq(hosts)) {
    yaml.tellAt({ line: 1, column: 1 }, 'must have hosts: and a list of them');
    return [];
  }
  return (hosts.items as Node[]).flatMap((item) => {
    if (!isMap(item)) {
      yaml.wrong(item, 'is no host: it must be fields with values');
      return [];
    }
    const row = rowOf(item, yaml);
    const values = { ...defaults?.values, ...row.values };
    return [{ ...row, values, labels: { ...defaults?.labels, ...row.labels } }];
  });
}

function rowOf(map: YAMLMap, yaml: YamlText): Row {
  const values: Row['values'] = {};
  let labels: Record<string, string> = {};
  for (const [name, key, value] of yaml.entries(map)) {
    if (!isField(name)) yaml.wrong(key, `has "${name}"; known are ${fields.join(', ')}`);
    else if (name === 'labels') {
      if (isMap(value)) labels = textsOf(value, key, yaml);
      else yaml.wrong(key, 'labels must be names with values');
      // The source text: a serial of digits is no number.
    } else if (isScalar(value)) values[name] = writtenAs(value);
    else yaml.wrong(key, `${name} must be a text`);
  }
  return { line: yaml.positionOf(map).line, values, labels };
}

function textsOf(map: YAMLMap, at: Node, yaml: YamlText): Record<string, string> {
  const pairs = [...yaml.entries(map)].flatMap(([name, , value]) => {
    if (isScalar(value)) return [[name, writtenAs(value)] as const];
    yaml.wrong(at, 'labels must be names with texts');
    return [];
  });
  return Object.fromEntries(pairs);
}
