/**
 * Finds the lines, hosts and machines that may match a machine. Pure.
 *
 * A line matches only through a serial, a MAC or a BMC address, and two machines are the same only
 * when a trait agrees (T2). Records that share none of these need no comparison. Indexes are built
 * once for each list that was read.
 */
import { traitKeys } from '../fleet-view/index.ts';
import { type KeptExpected, type KeptMachine, keysOfLine, keysOfMachine } from './kept.ts';
import type { KnownHost } from './snapshot.ts';

/** Unused lines that share one of the machine's traits, in their order. */
export function linesNear(kept: KeptMachine, expected: readonly KeptExpected[]): KeptExpected[] {
  return lineIndex(expected).near(keysOfMachine(kept));
}

/** Hosts that could be the machine, in their order. */
export function hostsNear({ traits }: KeptMachine, hosts: readonly KnownHost[]): KnownHost[] {
  return hostIndex(hosts).near([...traitKeys(traits), anyMachine]);
}

/** Other machines with the same UUID. */
export function twinsOf(
  { id, traits }: KeptMachine,
  machines: readonly KeptMachine[],
): KeptMachine[] {
  if (traits.uuid === undefined) return [];
  return machineIndex(machines)
    .near([`uuid ${traits.uuid}`])
    .filter((each) => each.id !== id);
}

/** The key of hosts that only their BMC can identify: it gives its UUID in several ways. */
const anyMachine = 'any';

const lineIndex = indexed(({ expected }: KeptExpected) => keysOfLine(expected));

const hostIndex = indexed(({ bootMacs, traits }: KnownHost) => [
  ...bootMacs.map((mac) => `mac ${mac}`),
  ...(traits === undefined ? [anyMachine] : traitKeys(traits)),
]);

const machineIndex = indexed(({ traits }: KeptMachine) => traitKeys(traits));

class Index<T> {
  readonly #items: readonly T[];
  readonly #positions = new Map<string, number[]>();

  constructor(items: readonly T[], keys: (item: T) => readonly string[]) {
    this.#items = items;
    for (const [position, item] of items.entries()) {
      for (const key of keys(item)) {
        const positions = this.#positions.get(key);
        if (positions === undefined) this.#positions.set(key, [position]);
        else positions.push(position);
      }
    }
  }

  near(keys: readonly string[]): T[] {
    const positions = new Set(keys.flatMap((key) => this.#positions.get(key) ?? []));
    const inOrder = [...positions].sort((one, other) => one - other);
    return inOrder.map((position) => this.#items[position]).filter((item) => item !== undefined);
  }
}

function indexed<T extends object>(keys: (item: T) => readonly string[]) {
  const made = new WeakMap<readonly T[], Index<T>>();
  return (items: readonly T[]): Index<T> => {
    const index = made.get(items) ?? new Index(items, keys);
    made.set(items, index);
    return index;
  };
}
