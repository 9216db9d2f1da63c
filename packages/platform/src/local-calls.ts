/** Questions from one program to another of the same owner on the same machine: a text each way. */
export interface LocalCalls {
  /** Answers at `path`, a socket that only its owner may open; a left one is replaced. */
  listen(path: string, answer: (request: string) => Promise<string>): Promise<LocalListener>;
  /** What was answered; undefined when nobody listens. Rejects when it takes too long. */
  call(path: string, request: string, timeoutMs: number): Promise<string | undefined>;
}

export interface LocalListener {
  close(): Promise<void>;
}
