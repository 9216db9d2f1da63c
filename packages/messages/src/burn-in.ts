/** The result of a burn-in, as text for people. Pure. */
import { timestampMs } from '@bufbuild/protobuf/wkt';
import { type BurnIn, BurnInKind, type BurnInPart } from './gen/rackwright/v1/burn_in_pb.ts';
import { counted, durationText } from './words.ts';

const names: Readonly<Record<BurnInKind, string>> = {
  [BurnInKind.UNSPECIFIED]: 'burn-in',
  [BurnInKind.CPU]: 'cpu burn-in',
  [BurnInKind.MEMORY]: 'memory burn-in',
  [BurnInKind.DISK]: 'disk burn-in',
  [BurnInKind.NETWORK]: 'network burn-in',
};

/** "cpu burn-in" */
export function burnInName({ kind }: Pick<BurnIn, 'kind'>): string {
  return names[kind] ?? names[BurnInKind.UNSPECIFIED];
}

/** "passed after 10 minutes, at most 71 °C", "failed after 3 seconds: 2 errors: …" */
export function burnInText({ passed, startTime, endTime, celsiusMax, problem }: BurnIn): string {
  const isTimed = startTime !== undefined && endTime !== undefined;
  const took = isTimed
    ? ` after ${durationText(timestampMs(endTime) - timestampMs(startTime))}`
    : '';
  const heat = celsiusMax === undefined ? '' : `, at most ${celsiusMax} °C`;
  const why = problem === '' ? '' : `: ${problem}`;
  return `${passed ? 'passed' : 'failed'}${took}${heat}${why}`;
}

/** One line for each part. */
export function burnInLines({ kind, parts }: BurnIn): string[] {
  return parts.map((part) => {
    const { name, passes, errors, correctedErrors, finding } = part;
    const corrected = correctedErrors === 0n ? '' : `${correctedErrors} corrected by ECC`;
    const often = kind === BurnInKind.DISK ? '' : counted(passes, 'pass', 'passes');
    const all = [...workOf(part, kind), often, counted(errors, 'error'), corrected, finding];
    return `${name}: ${all.filter((each) => each !== '').join(', ')}`;
  });
}

function workOf(part: BurnInPart, kind: BurnInKind) {
  const { bytes, writtenPerSecond, readPerSecond, linkMbps } = part;
  const mebibytes = `${bytes / 1_048_576n} MiB`;
  const reads = `${rate(readPerSecond)} read`;
  switch (kind) {
    case BurnInKind.CPU:
      return [`${rate(writtenPerSecond)} calculated`];
    case BurnInKind.MEMORY:
    case BurnInKind.DISK:
      return [mebibytes, `${rate(writtenPerSecond)} written`, reads];
    case BurnInKind.NETWORK: {
      const link = linkMbps === 0 ? '' : `link of ${linkMbps} Mbit/s`;
      return [mebibytes, `${rate(writtenPerSecond)} sent`, `${rate(readPerSecond)} received`, link];
    }
    case BurnInKind.UNSPECIFIED:
    default:
      return [];
  }
}

function rate(perSecond: bigint): string {
  return `${perSecond / 1_000_000n} MB/s`;
}
