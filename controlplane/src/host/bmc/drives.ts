/**
 * The drives that a host's BMC lists, as facts. They decide nothing by themselves: erasing compares
 * them with what the runner sees.
 */
import { create } from '@bufbuild/protobuf';
import {
  type agent,
  type BmcDriveList,
  BmcDriveListSchema,
  StorageSignKind,
  StorageSignSchema,
  StorageSource,
} from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { cut } from '../pass/step-failure.ts';

/** Drives of one list that are kept; facts are one bounded record. */
const drivesMax = 256;
const textMax = 256;

/**
 * Takes in what came with an operation that asks for the list. Without an answer about drives the
 * list of before is dropped: it may be another BMC's.
 */
export function noteDrives(pass: Pass, observations: agent.Observations | undefined): void {
  const asks = pass.record.operation?.operation?.kind.case;
  if (asks !== 'verifyAccess' && asks !== 'inspect') return;
  const told = observations?.bmcDrives;
  if (told === undefined && pass.context.facts.bmcDrives === undefined) return;
  const bmcDrives = told === undefined ? undefined : bounded(told);
  pass.effects.push({ kind: 'facts', facts: { bmcDrives } });
}

/** What is known now: as this pass has been told, else as it was known before. */
export function knownDrives({ effects, context }: Pass): BmcDriveList | undefined {
  const told = effects.findLast((effect) => effect.kind === 'facts' && 'bmcDrives' in effect.facts);
  return told?.kind === 'facts' ? told.facts.bmcDrives : context.facts.bmcDrives;
}

function bounded({ available, complete, unavailableReason, drives }: BmcDriveList): BmcDriveList {
  return create(BmcDriveListSchema, {
    available,
    complete: complete && drives.length <= drivesMax,
    unavailableReason: cut(unavailableReason, textMax),
    drives: drives.slice(0, drivesMax).map(({ name, model, serial, detail, sizeBytes }) =>
      create(StorageSignSchema, {
        source: StorageSource.BMC,
        kind: StorageSignKind.DRIVE,
        name: cut(name, textMax),
        model: cut(model, textMax),
        serial: cut(serial, textMax),
        detail: cut(detail, textMax),
        sizeBytes,
      }),
    ),
  });
}
