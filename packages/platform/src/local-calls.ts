/** Questions from one program to another of the same owner on the same machine: a text each way. */
export interface LocalCalls {
  /**
   * Answers at `path`, a socket that only its owner may open; a left one is replaced. `gone` is
   * aborted once the caller has hung up, also long after the answer.
   */
  listen(
    path: string,
    answer: (request: string, gone: AbortSignal) => Promise<string>,
  ): Promise<LocalListener>;
  /** The answer; undefined when nobody listens. Rejects when it takes too long. */
  call(path: string, request: string, timeoutMs: number): Promise<string | undefined>;
  /** As `call`, and stays connected: the answer is kept for the caller until it ends. */
  callAndStay(
    path: string,
    request: string,
    timeoutMs: number,
  ): Promise<ReleasableAnswer | undefined>;
}

/** An answer whose sender knows that its caller is still there. */
export interface ReleasableAnswer {
  readonly answer: string;
  /** Hangs up; resolves when the other side knows. */
  release(): Promise<void>;
}

export interface LocalListener {
  close(): Promise<void>;
}
