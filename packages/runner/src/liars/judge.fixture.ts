/** The judge: reads the disks' files from outside, and knows how each disk was made. */
import {
  type BoxDraft,
  type DiskDraft,
  isUntouched,
  shareLeft,
  sparesWritten,
} from './box.fixture.ts';
import type { CleanEnd } from './run.fixture.ts';

/** The violations; empty: none. `shareAllowed` may be left by a certificate that states it. */
export function judge(
  folder: string,
  box: BoxDraft,
  end: CleanEnd,
  shareAllowed: (disk: DiskDraft) => number = () => 0,
): string[] {
  const wrong = sparesWritten(folder, box).map((name) => `wrote the foreign disk ${name}`);
  for (const disk of box.disks) wrong.push(...judgeDisk(folder, disk, end, shareAllowed(disk)));
  if (end.certified.length === 0) return [...wrong, ...judgeText(box, end)];
  const uncertified = end.present.filter((serial) => !end.certified.includes(serial));
  wrong.push(...uncertified.map((serial) => `certified the host although ${serial} is there`));
  return [...wrong, ...box.signs.map(({ name }) => `certified the host in spite of ${name}`)];
}

function judgeDisk(
  folder: string,
  disk: DiskDraft,
  { planned, certified, memory }: CleanEnd,
  shareAllowed: number,
): string[] {
  const { serial, name, lies } = disk;
  const wrong: string[] = [];
  if (!planned.includes(serial) && !isUntouched(folder, disk)) {
    wrong.push(`wrote ${serial}, which is in no plan`);
  }
  if (!certified.includes(serial)) return wrong;
  // Capacity that it neither shows nor reports is stated as not examined.
  const left = shareLeft(folder, disk, disk.extra['tellsNativeSize'] === false);
  if (left > shareAllowed) wrong.push(`certified ${serial} with ${percent(left)} left`);
  const operations = memory.get(name)?.operations ?? 0;
  const changed = lies.some((lie) => lie.kind === 'says' && lie.afterOperations < operations);
  if (changed) wrong.push(`certified ${serial}, which said that it was another`);
  return wrong;
}

/** An end without certificates names a disk, or what hides one. */
function judgeText({ disks, spares, signs }: BoxDraft, { text }: CleanEnd): string[] {
  const serials = [...disks, ...spares].map(({ serial }) => serial);
  const named = [...serials, ...signs.map(({ name }) => name)];
  return named.some((name) => text.includes(name)) ? [] : [`does not name the disk: "${text}"`];
}

function percent(share: number): string {
  return `${(100 * share).toFixed(2)} %`;
}
