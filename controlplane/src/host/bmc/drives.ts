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
import { cut } from '../turn/step-failure.ts';
import type { Turn } from '../turn/turn.ts';

/** Drives of one list that are kept; facts are one bounded record. */
const drivesMax = 256;
const textMax = 256;

/**
 * Takes in what came with an operation that asks for the list. Without an answer about drives the
 * list of before is dropped: it may be another BMC's.
 */
export function noteDrives(turn: Turn, observations: agent.Observations | undefined): void {
  const asks = turn.record.operation?.operation?.kind.case;
  if (asks !== 'verifyAccess' && asks !== 'inspect') return;
  const told = observations?.bmcDrives;
  if (told === undefined && turn.context.facts.bmcDrives === undefined) return;
  const bmcDrives = told === undefined ? undefined : bounded(told);
  turn.effects.push({ kind: 'facts', facts: { bmcDrives } });
}

/** What is known now: as this turn has been told, else as it was known before. */
export function knownDrives({ effects, context }: Turn): BmcDriveList | undefined {
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
