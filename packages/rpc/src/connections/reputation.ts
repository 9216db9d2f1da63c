/**
 * The memory about networks of callers: which have authenticated lately, and which had failed
 * handshakes lately.
 */

/** `known` outweighs `suspect`: one address may have both behind it. */
export type Reputation = 'known' | 'stranger' | 'suspect';

export interface ReputationLimits {
  readonly knownForMs: number;
  readonly suspectForMs: number;
}

/** Networks that are remembered, of each kind; of more the oldest is forgotten. */
const rememberedMax = 8_192;

export class Reputations {
  readonly #limits: ReputationLimits;
  readonly #nowMs: () => number;
  /** Until when, the oldest first. */
  readonly #known = new Map<string, number>();
  readonly #suspects = new Map<string, number>();

  constructor(limits: ReputationLimits, nowMs: () => number) {
    this.#limits = limits;
    this.#nowMs = nowMs;
  }

  /** Whether any network has been known lately. */
  get hasKnown(): boolean {
    return this.#known.size > 0;
  }

  of(network: string): Reputation {
    if (this.#holds(this.#known, network)) return 'known';
    return this.#holds(this.#suspects, network) ? 'suspect' : 'stranger';
  }

  /** Somebody there has shown a certificate or a token that is good. */
  vouch(network: string): void {
    this.#remember(this.#known, network, this.#limits.knownForMs);
  }

  /** A handshake with it has failed, or no peer has authenticated there. */
  suspect(network: string): void {
    this.#remember(this.#suspects, network, this.#limits.suspectForMs);
  }

  #remember(map: Map<string, number>, network: string, forMs: number): void {
    map.delete(network);
    map.set(network, this.#nowMs() + forMs);
    const [oldest] = map.keys();
    if (map.size > rememberedMax && oldest !== undefined) map.delete(oldest);
  }

  #holds(map: Map<string, number>, network: string): boolean {
    const untilMs = map.get(network);
    if (untilMs === undefined) return false;
    if (this.#nowMs() < untilMs) return true;
    map.delete(network);
    return false;
  }
}
