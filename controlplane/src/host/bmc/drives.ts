/**
 * The drives that a host's BMC lists, as facts. They decide nothing alone: an erasure compares them
 * with the devices that the runner sees.
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
import type { Pass, PassView } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';

/** The most drives of one list: facts are one bounded record. */
const drivesMax = 256;
const textMax = 256;

/**
 * Takes the drives from an operation that requested the list. Without an answer about drives the
 * old list is dropped: it may be of another BMC.
 */
export function noteDrives(pass: Pass, observations: agent.Observations | undefined): void {
  const asks = pass.record.operation?.operation?.kind.case;
  if (asks !== 'verifyAccess' && asks !== 'inspect') return;
  const reported = observations?.bmcDrives;
  if (reported === undefined && pass.snapshot.facts.bmcDrives === undefined) return;
  const bmcDrives = reported === undefined ? undefined : bounded(reported);
  pass.effects.push({ kind: 'facts', facts: { bmcDrives } });
}

/** The present drives: those of this pass, otherwise the earlier ones. */
export function knownDrives({ effects, snapshot }: PassView): BmcDriveList | undefined {
  const reported = effects.findLast(
    (effect) => effect.kind === 'facts' && 'bmcDrives' in effect.facts,
  );
  return reported?.kind === 'facts' ? reported.facts.bmcDrives : snapshot.facts.bmcDrives;
}

function bounded({ available, complete, unavailableReason, drives }: BmcDriveList): BmcDriveList {
  return create(BmcDriveListSchema, {
    available,
    complete: complete && drives.length <= drivesMax,
    unavailableReason: truncate(unavailableReason, textMax),
    drives: drives.slice(0, drivesMax).map(({ name, model, serial, detail, sizeBytes }) =>
      create(StorageSignSchema, {
        source: StorageSource.BMC,
        kind: StorageSignKind.DRIVE,
        name: truncate(name, textMax),
        model: truncate(model, textMax),
        serial: truncate(serial, textMax),
        detail: truncate(detail, textMax),
        sizeBytes,
      }),
    ),
  });
}
