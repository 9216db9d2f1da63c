/** Carries out the method on a held device: the challenge first, then the erasure. */
import { type ByteSpan, leavesContent, type Region } from '@rackwright/erasure';
import type { OpenRegion } from '../machine/block-devices.ts';
import { borrowTransfers, splitSpans, writeZeros } from './transfers.ts';
import { pairRegions, type RegionChallenge, writeChallenge, writeMarks } from './verify.ts';
import {
  progressReporter,
  reportProgress,
  stopIfCancelled,
  transferGateOf,
  type Work,
} from './work.ts';

/** Discarded at once, bytes: between two such pieces it can be stopped. */
const discardBytesMax = 64 * 1024 ** 3;

/** The whole units that fit into one piece: a unit that two pieces share would keep its content. */
export function discardPieceBytes({ discardGranularityBytes = 1 }: Region): number {
  const units = Math.max(1, Math.floor(discardBytesMax / discardGranularityBytes));
  return units * discardGranularityBytes;
}

/** Writes the challenge of every region and reads it back. Rejects with `DeviceError`. */
export async function challengeRegions(work: Work): Promise<void> {
  reportProgress(work, 'challenge');
  const memory = borrowTransfers();
  try {
    for (const [open, challenge] of pairRegions(work.held, work.challenges)) {
      await writeChallenge(open, challenge, memory.transfers);
      const count = challenge.plan.challenges.length;
      work.log.push(`${challenge.region.name}: ${count} challenge blocks written and read back`);
    }
  } finally {
    memory.giveBack();
  }
}

/** Bytes that the method writes itself, before it begins. */
export function bytesToWrite({ method, challenges }: Pick<Work, 'method' | 'challenges'>): number {
  switch (method) {
    case 'overwrite':
    case 'metadataOnly':
      return challenges.reduce((sum, { spans }) => sum + bytesOf(spans), 0);
    case 'nvmeFormatCrypto':
    case 'nvmeFormat':
    case 'discard':
    case 'sanitizeCrypto':
    case 'sanitizeBlock':
    case 'sanitizeOverwrite':
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      return 0;
  }
}

/**
 * Erases by the method of the plan, and writes marks after a method that leaves any content.
 * Rejects with `DeviceError`.
 */
export async function applyMethod(work: Work): Promise<void> {
  await eraseBy(work);
  if (!leavesContent(work.method)) return;
  for (const [open, challenge] of pairRegions(work.held, work.challenges)) {
    await writeMarks(open, challenge);
    work.log.push(`${challenge.region.name}: ${challenge.marks.length} marks written after it`);
  }
}

async function eraseBy(work: Work): Promise<void> {
  const { context, held, method, log } = work;
  switch (method) {
    case 'nvmeFormatCrypto':
    case 'nvmeFormat': {
      const mode = method === 'nvmeFormatCrypto' ? 'crypto' : 'userData';
      reportProgress(work, method);
      stopIfCancelled(context);
      log.push(...(await held.nvmeFormat(mode)));
      return;
    }
    case 'sanitizeCrypto':
    case 'sanitizeBlock':
    case 'sanitizeOverwrite':
    case 'ataSecurityErase':
    case 'ataEnhancedErase':
      reportProgress(work, method);
      stopIfCancelled(context);
      log.push(...(await held.eraseItself(method)));
      return;
    case 'discard':
      for (const [open, challenge] of pairRegions(held, work.challenges)) {
        await discardRegion(work, open, challenge);
      }
      return;
    case 'overwrite':
    case 'metadataOnly':
      for (const [open, challenge] of pairRegions(held, work.challenges)) {
        await overwrite(work, open, challenge);
      }
      return;
  }
}

async function discardRegion(
  work: Work,
  open: OpenRegion,
  { region, spans }: RegionChallenge,
): Promise<void> {
  const transferGate = transferGateOf(work);
  reportProgress(work, 'discard');
  for (const { offset, length } of splitSpans(spans, discardPieceBytes(region))) {
    await transferGate();
    work.log.push(...(await open.discard(offset, length)));
  }
  const { sizeBytes, discardGranularityBytes = 1 } = region;
  const tailBytes = sizeBytes % discardGranularityBytes;
  if (tailBytes > 0) {
    const tail = { offset: sizeBytes - tailBytes, length: tailBytes };
    await writeZeros(open, [tail], transferGate, (bytes) => {
      work.bytesWritten += bytes;
    });
    work.log.push(`${region.name}: ${tailBytes} bytes at its end overwritten`);
  }
  await open.flush();
}

async function overwrite(
  work: Work,
  open: OpenRegion,
  { region, spans }: RegionChallenge,
): Promise<void> {
  const onBytes = progressReporter(work, work.method);
  await writeZeros(open, spans, transferGateOf(work), (bytes) => {
    work.bytesWritten += bytes;
    onBytes(bytes);
  });
  await open.flush();
  work.log.push(`${region.name}: ${bytesOf(spans)} bytes overwritten with zeros`);
}

function bytesOf(spans: readonly ByteSpan[]): number {
  return spans.reduce((sum, { length }) => sum + length, 0);
}
