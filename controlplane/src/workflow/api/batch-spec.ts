/** Validation of a batch, and the hosts that it selects: fixed at its creation. */
import {
  type Host,
  type HostName,
  type HostSelector,
  type HostUid,
  type WorkflowBatchSpec,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, storeKey } from '@rackwright/store';
import { nameProblem, parseName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { isRack } from '../../call/rack-filter.ts';
import { checkLabels } from '../../call/texts.ts';
import { quote, Violations } from '../../call/violations.ts';
import { useOf } from '../../host/index.ts';
import { readShared } from '../../records/index.ts';
import { readTemplate } from '../templates/index.ts';
import { checkVariables } from './workflow-spec.ts';

/** The most hosts of one batch. */
const hostsMax = 1_000;

export interface SelectedHost {
  /** "hosts/HOST" */
  readonly name: string;
  readonly uid: HostUid;
  readonly use: wire.HostUse;
}

export function checkBatchSpec(
  field: string,
  spec: WorkflowBatchSpec,
  violations: Violations,
): void {
  violations.addIf(`${field}.template`, nameProblem('templates', spec.template));
  checkVariables(`${field}.variables`, spec.variables, violations);
  const { maxParallel = 1, maxFailures = 1 } = spec;
  if (maxParallel < 1 || maxParallel > hostsMax) {
    violations.add(`${field}.max_parallel`, `must be from 1 to ${hostsMax}, or unset for 1`);
  }
  if (maxFailures > hostsMax) {
    violations.add(`${field}.max_failures`, `must be at most ${hostsMax}; 0 means never stop`);
  }
  checkSelector(`${field}.hosts`, spec.hosts, violations);
}

/** A selector must be non-empty, and contain only valid names. */
export function checkSelector(
  field: string,
  selector: HostSelector | undefined,
  violations: Violations,
): void {
  const { names = [], rack = '', labels = {} } = selector ?? {};
  if (names.length === 0 && rack === '' && Object.keys(labels).length === 0) {
    violations.add(field, 'selects nothing; give names, a rack or labels');
    return;
  }
  if (names.length > hostsMax) {
    violations.add(`${field}.names`, `has ${names.length} names; at most ${hostsMax} are taken`);
    return;
  }
  for (const [index, name] of names.entries()) {
    violations.addIf(`${field}.names[${index}]`, nameProblem('hosts', name));
  }
  if (rack !== '') violations.addIf(`${field}.rack`, nameProblem('racks', rack));
  checkLabels(`${field}.labels`, labels, violations);
}

/** The hosts that match now, in the order of their names. Throws `invalidArgument`. */
export async function selectHosts(
  { store, fleetView }: Pick<RpcDependencies, 'store' | 'fleetView'>,
  field: string,
  spec: WorkflowBatchSpec,
): Promise<SelectedHost[]> {
  const violations = new Violations();
  violations.addIf(`${field}.template`, await missingTemplate(store, spec.template));
  const hosts: { readonly host: Host; readonly use: wire.HostUse }[] = [];
  await fleetView.caughtUp();
  const wantedHosts = { names: [], rack: '', labels: {}, ...spec.hosts };
  for (const hostId of [...new Set(fleetView.candidates(wantedHosts))].toSorted()) {
    const kept = await readShared(store, wire.HostRecordSchema, storeKey('hosts', hostId));
    if (kept?.record.host === undefined) continue;
    hosts.push({ host: kept.record.host, use: useOf(kept.record) });
  }
  const there = new Set(hosts.map(({ host }) => host.name));
  const wanted = new Set<HostName>(spec.hosts?.names);
  for (const [index, name] of (spec.hosts?.names ?? []).entries()) {
    if (there.has(name)) continue;
    violations.add(`${field}.hosts.names[${index}]`, `names ${quote(name)}, which does not exist`);
  }
  const labels = Object.entries(spec.hosts?.labels ?? {});
  const rack = spec.hosts?.rack ?? '';
  const rackId = parseName('racks', rack);
  if (rackId !== undefined && !(await isRack(store, rackId))) {
    violations.add(`${field}.hosts.rack`, `names ${rack}, which does not exist`);
  }
  const selected = hosts.filter(
    ({ host }) =>
      (wanted.size === 0 || wanted.has(host.name)) &&
      (rack === '' || host.spec?.rack === rack) &&
      labels.every(([key, value]) => host.labels[key] === value),
  );
  if (selected.length > hostsMax) {
    violations.add(`${field}.hosts`, `selects ${selected.length} hosts; at most ${hostsMax} fit`);
  }
  if (selected.length === 0 && violations.count === 0) {
    violations.add(`${field}.hosts`, 'selects no host; see rackwright host list');
  }
  violations.throwIfAny();
  return selected.map(({ host: { name, uid }, use }) => ({ name, uid, use }));
}

/** What is wrong with the name of a template; undefined when there is such a template. */
async function missingTemplate(store: StateStore, name: string): Promise<string | undefined> {
  const templateId = parseName('templates', name);
  const template = templateId === undefined ? undefined : await readTemplate(store, templateId);
  if (template !== undefined) return undefined;
  const hint = `create it first: rackwright template create ${templateId ?? ''} FILE`;
  return `names ${name}, which does not exist; ${hint}`;
}
