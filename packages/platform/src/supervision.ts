/** A program's messages to its supervisor. Without a supervisor none has an effect. */
export interface Supervision {
  /** Everything is open: work may come. */
  ready(): Promise<void>;
  /** The program is stopping on request. */
  stopping(): Promise<void>;
  /**
   * Reports at intervals that the program is well, each time after `problem` has returned
   * undefined. A problem is logged, and nothing is reported. Returns the function that ends it.
   */
  watch(problem: () => Promise<string | undefined>): () => void;
}
