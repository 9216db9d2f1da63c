/**
 * Which bytes metadata erasure overwrites: both ends of each region and of each partition, where
 * partition tables, boot loaders and the superblocks of file systems, RAID and LVM live. Pure.
 */
import type { ByteSpan } from './challenge.ts';
import type { Partition, Region } from './facts.ts';

/** Overwritten at each end; holds a GPT with 128 entries, and ZFS's four labels of 256 KiB. */
export const metadataSpanBytes = 1024 * 1024;
/** Partitions beyond this are left out, so that the work stays bounded; tables hold 128. */
export const partitionsMax = 256;

/** The spans of one region, ascending, not overlapping, with bounds on 4 KiB where possible. */
export function metadataSpans(region: Region, partitions: readonly Partition[]): ByteSpan[] {
  const whole = { offset: 0, length: region.sizeBytes };
  const parts = partitions
    .filter((partition) => partition.region === region.name)
    .slice(0, partitionsMax)
    .map((partition) => ({ offset: partition.offsetBytes, length: partition.sizeBytes }));
  const ends = [whole, ...parts].flatMap(bothEnds);
  return mergeSpans(ends.flatMap((span) => align(span, region.sizeBytes)));
}

function bothEnds(span: ByteSpan): ByteSpan[] {
  const length = Math.min(metadataSpanBytes, span.length);
  return [
    { offset: span.offset, length },
    { offset: span.offset + span.length - length, length },
  ];
}

function align(span: ByteSpan, limit: number): ByteSpan[] {
  const start = Math.floor(span.offset / 4096) * 4096;
  const end = Math.min(Math.ceil((span.offset + span.length) / 4096) * 4096, limit);
  return start >= 0 && end - start >= 4096 ? [{ offset: start, length: end - start }] : [];
}

function mergeSpans(spans: readonly ByteSpan[]): ByteSpan[] {
  const merged: ByteSpan[] = [];
  for (const span of [...spans].sort((left, right) => left.offset - right.offset)) {
    const before = merged.at(-1);
    if (before === undefined || span.offset > before.offset + before.length) {
      merged.push(span);
    } else {
      const end = Math.max(before.offset + before.length, span.offset + span.length);
      merged[merged.length - 1] = { offset: before.offset, length: end - before.offset };
    }
  }
  return merged;
}
