/** What a destructive command takes away, in numbers, before it is asked for. Pure. */

import { sizeText } from '@rackwright/disk-image/size';
import { counted, type Host, HostState, RunKind, RunOutcome, RunPhase } from '@rackwright/messages';
import type { Clock } from '@rackwright/platform';
import { rootDiskText } from './deploy.ts';
import { stateText } from './host.ts';
import { ago } from './time.ts';

/** What is asked for; `steps` and `image` as a person gave them. */
export type Destruction =
  | { readonly kind: 'clean'; readonly steps: readonly string[] }
  | { readonly kind: 'provision' | 'reimage'; readonly image: string; readonly netboot: boolean }
  | { readonly kind: 'release' }
  | { readonly kind: 'delete'; readonly force: boolean };

/** Lines that say what is lost, the question last. */
export function lossLines(what: Destruction, host: Host, clock: Clock): readonly string[] {
  return [...effectLines(what, host), ...useLines(host, clock), `${questionOf(what, host)} [y/N] `];
}

function questionOf(what: Destruction, { name }: Host): string {
  switch (what.kind) {
    case 'clean':
      return `Clean ${name}?`;
    case 'provision':
    case 'reimage':
      return `Write ${what.image} onto ${name}?`;
    case 'release':
      return `Release ${name}?`;
    case 'delete':
      return what.force ? `Remove ${name} by force?` : `Delete ${name}?`;
  }
}

function effectLines(what: Destruction, host: Host): readonly string[] {
  const disks = disksText([host]);
  switch (what.kind) {
    case 'clean':
      return what.steps.length === 0
        ? [`All data on ${disks} is lost.`]
        : [`It runs ${what.steps.join(', ')}. A step that erases loses all data on ${disks}.`];
    case 'provision':
    case 'reimage':
      return what.netboot
        ? ['It is booted anew; no disk is written.']
        : [rootLossText(host, disks)];
    case 'release':
      return [`It is switched off, and its clean loses all data on ${disks}.`];
    case 'delete':
      return [deletionText(host, what.force, disks)];
  }
}

function rootLossText({ spec }: Host, disks: string): string {
  const hints = rootDiskText(spec?.rootDisk);
  const which = hints === '' ? 'its root disk' : `its root disk (${hints})`;
  return `All data on ${which}, of ${disks}, is lost.`;
}

function deletionText({ spec, status }: Host, force: boolean, disks: string): string {
  if (force) return `Its record goes at once; power, and data on ${disks}, may stay as they are.`;
  const erased = status?.state === HostState.PROVISIONED && spec?.deletion?.keepData !== true;
  return erased ? `All data on ${disks} is lost, and its record goes.` : 'Its record goes.';
}

/** What the host is used for, where that is known. */
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
