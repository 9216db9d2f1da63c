/** The child's number for the first of `ExecRequest.descriptors`. */
export const firstInheritedDescriptor = 3;

/** One run of a program, bounded in time and output. */
export interface ExecRequest {
  readonly file: string;
  readonly args: readonly string[];
  /** Written to standard input, which is then closed. Secrets go here, never into `args`. */
  readonly stdin?: string;
  /** Until this is aborted standard input stays open behind `stdin`; absent: it is closed. */
  readonly inputOpenUntil?: AbortSignal;
  /** Receives standard output as it arrives, all of it. Must be quick, and must not throw. */
  readonly onOutput?: (bytes: Uint8Array) => void;
  /**
   * Open descriptors of ours that the child gets too, numbered from `firstInheritedDescriptor` on:
   * the first one is its `/dev/fd/3`. They stay open here.
   */
  readonly descriptors?: readonly number[];
  /** The child is killed (SIGKILL, with its process group) when this much time has passed. */
  readonly timeoutMs: number;
  /** Output beyond this is cut and marked. */
  readonly outputBytesMax: number;
}

export type ExecResult =
  | {
      readonly kind: 'exited';
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
    }
  | { readonly kind: 'timedOut'; readonly stdout: string; readonly stderr: string }
  | { readonly kind: 'notStarted'; readonly message: string };

/** Runs programs. The child's environment is empty but for PATH and LC_ALL=C. */
export interface Exec {
  run(request: ExecRequest, signal?: AbortSignal): Promise<ExecResult>;
}
