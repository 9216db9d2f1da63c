/** Makes an input smaller that fails: parts go, then bytes become plain, as long as it fails. */

export interface ReduceLimits {
  /** Most inputs that are tried. */
  readonly tries: number;
  /** Whether time is left for another one. */
  readonly goesOn: () => boolean;
}

/** The smallest input found for which `fails` is true; the input itself is taken to fail. */
export async function reduce(
  input: Uint8Array,
  fails: (smaller: Uint8Array) => Promise<boolean>,
  { tries, goesOn }: ReduceLimits,
): Promise<Uint8Array> {
  let best = input;
  let left = tries;
  const attempt = async (candidate: Uint8Array): Promise<boolean> => {
    if (left <= 0 || !goesOn()) return false;
    left -= 1;
    if (!(await fails(candidate))) return false;
    best = candidate;
    return true;
  };
  for (let size = Math.ceil(best.length / 2); size >= 1 && left > 0; size = nextSize(size)) {
    let at = 0;
    while (at < best.length && left > 0 && goesOn()) {
      const removed = await attempt(without(best, at, size));
      if (!removed) at += size;
    }
  }
  for (let at = 0; at < best.length && left > 0 && goesOn(); at += 1) {
    if (best[at] !== plainByte) await attempt(best.with(at, plainByte));
  }
  return best;
}

/** "0": plain in a text, and small as a number. */
const plainByte = 0x30;

function nextSize(size: number): number {
  return size === 1 ? 0 : Math.floor(size / 2);
}

function without(input: Uint8Array, at: number, count: number): Uint8Array {
  const result = new Uint8Array(Math.max(at, input.length - count));
  result.set(input.subarray(0, at));
  result.set(input.subarray(at + count), at);
  return result;
}
