/** Chance as the simulated world uses it: how long things take, and whether they go wrong. */

export interface Chance {
  /** Milliseconds; how long something of about this length takes now. */
  around(typicalMs: number): number;
  /** Never true after the faults have stopped. */
  happens(probability: number): boolean;
  /** One of several; the list must not be empty. */
  pick<T>(choices: readonly T[]): T;
}

export function makeChance(random: { fraction(): number }, faulty: () => boolean): Chance {
  return {
    around: (typicalMs) => Math.round(typicalMs * (0.5 + random.fraction())),
    happens: (probability) => faulty() && random.fraction() < probability,
    pick: (choices) => {
      const chosen = choices[Math.floor(random.fraction() * choices.length)];
      if (chosen === undefined) throw new Error('nothing to choose from');
      return chosen;
    },
  };
}
