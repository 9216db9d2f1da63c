/** Information about a run before its start, besides its steps and devices. Pure. */
import { toJson } from '@bufbuild/protobuf';
import { TimestampSchema } from '@bufbuild/protobuf/wkt';
import { namesOfNone } from '@rackwright/disk-image';
import { applyVolumesStep, isErasure, RunKind, type RunStep } from '@rackwright/messages';
import { decideToWrite, tooWeakFor } from '../erasure/device-plan.ts';
import { gapsOf } from '../erasure/gaps.ts';
import { freezeText, stepBraked } from '../pass/brake.ts';
import type { Pass, PassView } from '../pass/pass.ts';
import { engineSteps } from '../pass/step-names.ts';
import { foreseeRoot, problemOfRoot } from './deployment.ts';

/** True at the time of the plan; no part of the plan's basis. */
export function notesOn(pass: Pass, kind: RunKind, steps: readonly RunStep[]): string[] {
  const inBand = steps.some(({ name }) => name === engineSteps.awaitRunner);
  return [
    ...(inBand ? runnerNotes(pass) : []),
    ...diskNotes(pass, kind, steps),
    ...deployNotes(pass, kind),
    ...cleanNotes(pass, kind, steps),
    ...personNotes(steps),
    ...brakeNotes(pass, kind, steps),
  ];
}

function runnerNotes({ snapshot, record }: PassView): string[] {
  const { facts, session, sessionElsewhere } = snapshot;
  const rack = record.host?.spec?.rack ?? 'the rack';
  return [
    ...(facts.runnerSteps.length === 0
      ? ['no runner of this host has reported its steps yet: these are those of our own runner']
      : []),
    ...(session === undefined && !sessionElsewhere
      ? [`the agent of ${rack} is not connected: the run waits for it`]
      : []),
  ];
}

function diskNotes(pass: Pass, kind: RunKind, steps: readonly RunStep[]): string[] {
  if (steps.some(({ name }) => name === applyVolumesStep)) return [volumesNote];
  return steps.some(({ name }) => isErasure(name)) ? deviceNotes(pass, kind) : [];
}

const volumesNote =
  `${applyVolumesStep} makes other disks: what stands there after it is erased, whatever it is; ` +
  'the disks that are listed here are those of before';

function deviceNotes(pass: Pass, kind: RunKind): string[] {
  const { snapshot, spec } = pass;
  const { inventory } = snapshot.facts;
  if (inventory === undefined) {
    return ['the host has never been inspected: its disks are known once the runner is up'];
  }
  const gaps = gapsOf(pass, inventory);
  const at = inventory.collectedAt;
  const seen = at === undefined ? 'last' : `at ${toJson(TimestampSchema, at)}`;
  const others = kind === RunKind.CLEAN ? 'nothing is erased' : 'those are erased as well';
  return [
    `the disks are those that the runner saw ${seen}; if it finds others, ${others}`,
    ...gaps.map(({ text }) => `the run would fail: ${text}`),
    ...(inventory.devices.length === 0 && spec.cleaning?.allowDiskless !== true
      ? ['the run would fail: the host has no disk, and cleaning.allow_diskless is not set']
      : []),
  ];
}

function deployNotes({ snapshot, spec, record }: PassView, kind: RunKind): string[] {
  if (kind !== RunKind.PROVISION && kind !== RunKind.REIMAGE) return [];
  const { inventory } = snapshot.facts;
  if (record.deploy?.netboot === true || inventory === undefined) return [];
  const root = foreseeRoot(decideToWrite(inventory, spec.cleaning), spec.rootDisk, record.deploy);
  const problem = problemOfRoot(root, record.deploy);
  const strange = namesOfNone(inventory.devices, record.deploy?.keepDisks ?? []);
  return [
    ...(problem === undefined ? [] : [problem]),
    ...(strange.length === 0
      ? []
      : [`keep_disks names ${strange.join(', ')}, which no disk of the host has: it keeps none`]),
  ];
}

function cleanNotes(pass: PassView, kind: RunKind, steps: readonly RunStep[]): string[] {
  if (kind !== RunKind.CLEAN) return [];
  const manual = pass.status.run?.manual === true;
  const tooWeak = tooWeakFor(pass.host, { manual, steps }, pass.snapshot.fleet);
  return tooWeak === undefined ? [] : [`it would be refused: ${tooWeak.message}`];
}

function personNotes(steps: readonly RunStep[]): string[] {
  const held = steps.flatMap(({ name }, index) => (name === engineSteps.hold ? [index + 1] : []));
  if (held.length === 0) return [];
  return [`waits for a person at step ${held.join(', ')} (rackwright host resume)`];
}

function brakeNotes({ snapshot }: PassView, kind: RunKind, steps: readonly RunStep[]): string[] {
  const { freeze, restored } = snapshot;
  const braked = stepBraked(kind, steps);
  return [
    ...(restored === undefined ? [] : [`nothing is ordered now: ${restored}`]),
    ...(freeze === undefined || braked === -1
      ? []
      : [`waits before step ${braked + 1}: ${freezeText(freeze)}`]),
  ];
}
