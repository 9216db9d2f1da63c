/** The browser's clock and timers, for code that takes them as arguments. */
export interface PageClock {
  nowMs(): number;
  /** Calls `work` after so long, unless the answer is called before. */
  after(delayMs: number, work: () => void): () => void;
}

/** An id for a request that may be sent twice and is carried out once. */
export function newRequestId(): string {
  return crypto.randomUUID();
}

export const pageClock: PageClock = {
  nowMs: () => Date.now(),
  after: (delayMs, work) => {
    const timer = setTimeout(work, delayMs);
    return () => clearTimeout(timer);
  },
};
