/** From a seed and names of cases to a machine with hostile disks. */
import { type BoxDraft, type DiskKind, diskDraft } from './box.fixture.ts';
import { type Case, type CaseName, cases, type Draw } from './cases.fixture.ts';

const kinds: readonly DiskKind[] = ['discard', 'overwrite', 'format', 'crypto'];
/** Blocks of 4 KiB of a disk. */
const sizes = [24, 48, 80] as const;
/** A cryptographic erase needs room for marks beside the challenge. */
const cryptoBlocks = 128;

/**
 * Two disks, and each case on one of them: the second on the same disk as the first or on the
 * other, as is drawn and possible.
 */
export function draftBox(names: readonly CaseName[], draw: Draw): BoxDraft {
  const box: BoxDraft = { disks: [], spares: [], signs: [] };
  const [first, ...others] = names;
  const wanted = [first, others.find((name) => !sharesKind(first, name))];
  for (const [index, name] of wanted.entries()) {
    const allowed = (name === undefined ? undefined : kindsOf(name)) ?? kinds;
    const kind = pick(allowed, draw);
    const blocks = pick(sizes, draw);
    box.disks.push(diskDraft(`d${index}`, kind, kind === 'crypto' ? cryptoBlocks : blocks));
  }
  for (const [index, name] of names.entries()) {
    const fitting = box.disks.filter(({ kind }) => kindsOf(name).includes(kind));
    // A third case may fit neither disk.
    if (fitting.length === 0) continue;
    const disk = index === 0 ? fitting[0] : pick(fitting, draw);
    if (disk === undefined) continue;
    const chosen: Case = cases[name];
    chosen.apply(disk, box, draw);
  }
  return box;
}

function kindsOf(name: CaseName): readonly DiskKind[] {
  const chosen: Case = cases[name];
  return chosen.kinds ?? kinds;
}

function sharesKind(left: CaseName | undefined, right: CaseName): boolean {
  return left === undefined || kindsOf(left).some((kind) => kindsOf(right).includes(kind));
}

function pick<T>(from: readonly T[], draw: Draw): T {
  const found = from[Math.floor(draw() * from.length)];
  if (found === undefined) throw new Error('nothing to pick from');
  return found;
}
