/** A program's messages to its supervisor. Without a supervisor none has an effect. */
export interface Supervision {
  /** Everything is open: work may come. */
  ready(): Promise<void>;
  /** The end was asked for and is under way. */
  stopping(): Promise<void>;
  /**
   * Says again and again that the program is well, each time after `problem` has answered
   * undefined; a text is logged and nothing is said. Answers how to end that.
   */
  watch(problem: () => Promise<string | undefined>): () => void;
}
