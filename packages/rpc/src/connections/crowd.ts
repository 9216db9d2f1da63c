/** Members by their networks, so that the network with most of them is known at any time. */
export class MembersByNetwork<Member> {
  readonly #members = new Map<string, Set<Member>>();
  /** At each index the networks with that many members; the one that reached it first is first. */
  readonly #levels: Set<string>[] = [];
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** One that is there already stays where it is. */
  add(network: string, member: Member): void {
    const own = this.#members.get(network) ?? new Set();
    if (own.has(member)) return;
    own.add(member);
    this.#members.set(network, own);
    this.#size += 1;
    this.#move(network, own.size - 1, own.size);
  }

  /** False: it is not there. */
  delete(network: string, member: Member): boolean {
    const own = this.#members.get(network);
    if (own?.delete(member) !== true) return false;
    if (own.size === 0) this.#members.delete(network);
    this.#size -= 1;
    this.#move(network, own.size + 1, own.size);
    return true;
  }

  /** The oldest member of each network; networks with most members first. */
  *oldestOfLargestNetwork(): Iterable<Member> {
    for (let level = this.#levels.length - 1; level > 0; level -= 1) {
      for (const network of this.#levels[level] ?? []) {
        const [first] = this.#members.get(network) ?? [];
        if (first !== undefined) yield first;
      }
    }
  }

  #move(network: string, from: number, to: number): void {
    this.#levels[from]?.delete(network);
    while (this.#levels.length <= to) this.#levels.push(new Set());
    if (to > 0) this.#levels[to]?.add(network);
    // So that the last level has a network.
    while (this.#levels.at(-1)?.size === 0) this.#levels.pop();
  }
}
