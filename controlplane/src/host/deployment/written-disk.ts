/**
 * The content of the disk that an image was written to, as the runner has read it back. Pure.
 *
 * Invariants:
 * 1. It is shown only while it is valid: from the first moment at which the disk may be
 *    overwritten, it is not shown. It is shown again when no attempt has touched the disk.
 * 2. A partial write is shown as such.
 */

import { create } from '@bufbuild/protobuf';
import {
  type agent,
  type RunStep,
  type WrittenDisk,
  WrittenDiskSchema,
  writeImageStep,
} from '@rackwright/messages';
import type { Pass } from '../pass/pass.ts';
import { truncate } from '../pass/step-failure.ts';
import { move } from '../pass/transitions.ts';
import { beginWrite, type DiskAfter, forgetImage } from './deployment.ts';

/** The longest texts of it in the status, in characters. */
const nameMax = 128;
const problemMax = 512;

/** From here on the disk may be overwritten (1). */
export function beginWriteOver(pass: Pass): void {
  const { status, record } = pass;
  beginWrite(pass);
  move(status, 'written');
  if (record.replaced !== undefined && status.writtenDisk !== undefined) {
    record.replaced.writtenDisk = status.writtenDisk;
  }
  delete status.writtenDisk;
}

/** What a write attempt reports of the disk at its end (2). */
export function noteWritten({ status }: Pass, { name }: RunStep, { result }: agent.Report): void {
  if (name !== writeImageStep || (result.case !== 'complete' && result.case !== 'failed')) return;
  const written = result.value.observations?.writtenImage;
  if (written !== undefined) status.writtenDisk = kept(written);
}

function kept(written: agent.WrittenImage): WrittenDisk {
  const { serial, wwn, device, whole, contentDigest, grownBytes } = written;
  return create(WrittenDiskSchema, {
    disk: truncate(serial || wwn || device, nameMax),
    whole: whole === true,
    contentDigest: truncate(contentDigest, nameMax),
    grownBytes,
    notGrown: truncate(written.notGrown, problemMax),
    bootEntryProblem: truncate(written.bootEntryProblem, problemMax),
  });
}

/** At the end of a deployment. `before`: the content that the write was to replace, if any. */
export function settleWritten({ status }: Pass, before: ReplacedImage, disk: DiskAfter): void {
  const untouched = before?.writtenDisk;
  if (disk === 'untouched' && untouched !== undefined) status.writtenDisk = untouched;
}

type ReplacedImage = Pass['record']['replaced'];

/** The disks have been erased. */
export function forgetDisks(pass: Pass): void {
  forgetImage(pass);
  delete pass.status.writtenDisk;
}
