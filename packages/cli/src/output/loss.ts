/** The loss that a destructive command causes, in numbers, before the request is sent. Pure. */

import { sizeText } from '@rackwright/disk-image/size';
import { counted, type Host, HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { rootDiskText } from './deploy.ts';
import { stateText } from './host.ts';
import { ago } from './time.ts';

/** The requested destruction; `steps` and `image` as a person gave them. */
export type Destruction =
  | { readonly kind: 'clean'; readonly steps: readonly string[] }
  | { readonly kind: 'provision' | 'reimage'; readonly image: string; readonly netboot: boolean }
  | { readonly kind: 'release' }
  | { readonly kind: 'delete'; readonly force: boolean };

/** Lines about the loss, the question last. */
export function lossLines(loss: Destruction, host: Host, clock: Clock): readonly string[] {
  return [...effectLines(loss, host), ...useLines(host, clock), `${questionOf(loss, host)} [y/N] `];
}

/** Hosts that are named before a request to many; of more hosts only the number is shown. */
const namedMost = 12;

/** Lines about the selected hosts and their loss, before the question. */
export function bulkLossLines(
  word: string,
  loss: Destruction | undefined,
  hosts: readonly Host[],
): readonly string[] {
  const names = hosts.slice(0, namedMost).map(({ name }) => name.replace('hosts/', ''));
  const more = hosts.length > namedMost ? `, and ${hosts.length - namedMost} more` : '';
  const racks = new Set(hosts.map(({ spec }) => spec?.rack ?? ''));
  const states = [...countBy(hosts, stateText)].map(([state, count]) => `${count} ${state}`);
  const which = `${word}: ${counted(hosts.length, 'host')} in ${counted(racks.size, 'rack')}`;
  const running = hosts.filter(({ status }) => (status?.image ?? '') !== '').length;
  const claimed = hosts.filter(({ status }) => status?.claim !== undefined).length;
  const use = [
    ...(running === 0 ? [] : [`${running} with an image`]),
    ...(claimed === 0 ? [] : [`${claimed} claimed by somebody`]),
  ];
  return [
    `${which}: ${names.join(', ')}${more}`,
    `They are: ${[...states, ...use].join(', ')}.`,
    ...(loss === undefined ? [] : bulkEffectLines(loss, hosts)),
  ];
}

function bulkEffectLines(loss: Destruction, hosts: readonly Host[]): readonly string[] {
  const disks = disksText(hosts);
  switch (loss.kind) {
    case 'clean':
      return loss.steps.length === 0
        ? []
        : [`They run ${loss.steps.join(', ')}. A step that erases loses all data on ${disks}.`];
    case 'provision':
    case 'reimage':
      return loss.netboot
        ? ['They are booted anew; no disk is written.']
        : [`All data on the root disk of each, of ${disks}, is lost.`];
    case 'release':
      return [`They are switched off, and their clean loses all data on ${disks}.`];
    case 'delete': {
      if (loss.force) return [`Their records go at once; power, and data on ${disks}, may stay.`];
      const erased = hosts.filter(isErasedByDeletion);
      if (erased.length === 0) return ['Their records go.'];
      return [`All data on ${disksText(erased)} of ${counted(erased.length, 'host')} is lost.`];
    }
  }
}

/** The question before a request for many hosts; where data is lost, the answer is their number. */
export function bulkQuestion(
  word: string,
  loss: Destruction | undefined,
  hosts: readonly Host[],
): string {
  const which = counted(hosts.length, 'host');
  if (loss === undefined) return `Ask for ${word} of ${which}? [y/N] `;
  const verb = loss.kind === 'clean' && loss.steps.length === 0 ? 'Wipe' : capital(word);
  const lost = verb === 'Wipe' ? `: ${disksText(hosts)}? All data is lost.` : '?';
  return `${verb} ${which}${lost} Type ${hosts.length} to go on: `;
}

function capital(word: string): string {
  return `${word.slice(0, 1).toUpperCase()}${word.slice(1)}`;
}

function countBy(hosts: readonly Host[], of: (host: Host) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const host of hosts) counts.set(of(host), (counts.get(of(host)) ?? 0) + 1);
  return counts;
}

function questionOf(loss: Destruction, { name }: Host): string {
  switch (loss.kind) {
    case 'clean':
      return `Clean ${name}?`;
    case 'provision':
    case 'reimage':
      return `Write ${loss.image} onto ${name}?`;
    case 'release':
      return `Release ${name}?`;
    case 'delete':
      return loss.force ? `Remove ${name} by force?` : `Delete ${name}?`;
  }
}

function effectLines(loss: Destruction, host: Host): readonly string[] {
  const disks = disksText([host]);
  switch (loss.kind) {
    case 'clean':
      return loss.steps.length === 0
        ? [`All data on ${disks} is lost.`]
        : [`It runs ${loss.steps.join(', ')}. A step that erases loses all data on ${disks}.`];
    case 'provision':
    case 'reimage':
      return loss.netboot
        ? ['It is booted anew; no disk is written.']
        : [rootLossText(host, disks)];
    case 'release':
      return [`It is switched off, and its clean loses all data on ${disks}.`];
    case 'delete':
      return [deletionText(host, loss.force, disks)];
  }
}

function rootLossText({ spec }: Host, disks: string): string {
  const hints = rootDiskText(spec?.rootDisk);
  const which = hints === '' ? 'its root disk' : `its root disk (${hints})`;
  return `All data on ${which}, of ${disks}, is lost.`;
}

function deletionText(host: Host, force: boolean, disks: string): string {
  if (force) return `Its record goes at once; power, and data on ${disks}, may stay as they are.`;
  return isErasedByDeletion(host)
    ? `All data on ${disks} is lost, and its record goes.`
    : 'Its record goes.';
}

function isErasedByDeletion({ spec, status }: Host): boolean {
  return status?.state === HostState.PROVISIONED && spec?.deletion?.keepData !== true;
}

/** The present use of the host, where that is known. */
function useLines(host: Host, clock: Clock): readonly string[] {
  const { status } = host;
  const { claim, image = '', run, poweredOn } = status ?? {};
  const isDeployed =
    run?.phase === RunPhase.ENDED &&
    run.outcome === RunOutcome.SUCCEEDED &&
    (run.kind === RunKind.PROVISION || run.kind === RunKind.REIMAGE);
  const since = isDeployed ? `, deployed ${ago(clock, run.endTime)}` : '';
  const power = poweredOn === undefined ? '' : `, power ${poweredOn ? 'on' : 'off'}`;
  const claimed =
    claim === undefined ? [] : [`Claimed by ${claim.by} ${ago(clock, claim.at)}: ${claim.reason}`];
  return [
    `It is ${stateText(host)}${power}.`,
    ...(image === '' ? [] : [`It runs ${image}${since}.`]),
    ...claimed,
  ];
}

/** "2 disks (1.9 TB)", of all these hosts together. */
export function disksText(hosts: readonly Host[]): string {
  const unknown = hosts.filter(({ status }) => status?.inventory === undefined).length;
  const disks = hosts.flatMap(({ status }) =>
    (status?.inventory?.devices ?? []).filter(({ removable, readOnly }) => !removable && !readOnly),
  );
  const bytes = disks.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0n);
  const known = `${counted(disks.length, 'disk')} (${sizeText(bytes)})`;
  if (unknown === 0) return known;
  const others = 'disks that no inventory has named yet';
  if (unknown === hosts.length) return others;
  return `${known} and, of ${counted(unknown, 'host')}, ${others}`;
}
