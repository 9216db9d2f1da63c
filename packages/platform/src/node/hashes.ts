/**
 * Hashing in threads beside that of the program.
 *
 * H1 A piece in shared memory is hashed in place; another one is copied to the thread.
 * H2 A thread that ends before its time fails the hash: no digest is made up.
 * H3 A thread without pending work does not keep a process from ending.
 */
import { createHash } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import type { Hashes, RunningHash } from '../hashes.ts';
import { markHandled } from '../rejections.ts';

/** Below that a thread costs more than it brings. */
const threadedBytesMin = 32 * 1024 * 1024;
/**
 * More threads would only share the cores. Beyond this, content is hashed in the caller's thread.
 */
const threadsMax = 4;
const heapMib = 16;

/** After so many bytes other work runs, if the caller awaits it. */
const bytesAtOnce = 16 * 1024 * 1024;

/** Hashes where it is called, and lets everything else wait meanwhile. */
export const callersHashes: Hashes = {
  start: () => {
    const hash = createHash('sha256');
    let bytesSinceYield = 0;
    return {
      update: async (bytes) => {
        hash.update(bytes);
        bytesSinceYield += bytes.length;
        if (bytesSinceYield < bytesAtOnce) return;
        bytesSinceYield = 0;
        await new Promise<void>((resolve) => setImmediate(resolve));
      },
      digest: async () => hash.digest('hex'),
      close: () => {},
    };
  },
};

/** Large content is hashed in threads of its own, the rest where it is called. */
export function nodeHashes(threadedFromBytes = threadedBytesMin): Hashes {
  let threads = 0;
  return {
    start: (bytesMax) => {
      if (bytesMax < threadedFromBytes || threads >= threadsMax) {
        return callersHashes.start(bytesMax);
      }
      threads += 1;
      return new ThreadHash(() => {
        threads -= 1;
      });
    },
  };
}

/** The next piece; nothing: answer the digest. */
type HashRequest = Uint8Array | null;
/** The digest; nothing: the piece has been hashed. */
type HashResponse = string | null;

class ThreadHash implements RunningHash {
  readonly #worker: Worker;
  readonly #closed: () => void;
  /** Pending answers; they arrive in the order of the requests. */
  readonly #waiting: PromiseWithResolvers<HashResponse>[] = [];
  #failure: Error | undefined;
  #isOpen = true;

  constructor(closed: () => void) {
    this.#closed = closed;
    // Loaded here, because programs start without it.
    const { Worker } = process.getBuiltinModule('node:worker_threads');
    this.#worker = new Worker(`(${hashInThread.toString()})()`, {
      ...{ eval: true, name: 'hash', env: {}, execArgv: [] },
      resourceLimits: { maxOldGenerationSizeMb: heapMib, maxYoungGenerationSizeMb: 1 },
    });
    this.#worker.on('message', (answer: HashResponse) => {
      this.#waiting.shift()?.resolve(answer);
      if (this.#waiting.length === 0) this.#worker.unref();
    });
    this.#worker.on('error', (error) => this.#fail('failed', error));
    this.#worker.on('exit', () => this.#fail('ended'));
    this.#worker.unref();
  }

  update(bytes: Uint8Array): Promise<unknown> {
    return this.#ask(bytes);
  }

  async digest(): Promise<string> {
    return (await this.#ask(null)) ?? '';
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    this.#closed();
    this.#fail('ended');
    void this.#worker.terminate();
  }

  #ask(request: HashRequest): Promise<HashResponse> {
    const answer = Promise.withResolvers<HashResponse>();
    // The caller gets the error, now or later, or at the digest.
    markHandled(answer.promise);
    if (this.#failure !== undefined) {
      answer.reject(this.#failure);
      return answer.promise;
    }
    if (this.#waiting.length === 0) this.#worker.ref();
    this.#waiting.push(answer);
    this.#worker.postMessage(request, []);
    return answer.promise;
  }

  #fail(how: string, cause?: unknown): void {
    this.#failure ??= new Error(`the thread that hashes has ${how}`, { cause });
    for (const { reject } of this.#waiting.splice(0)) reject(this.#failure);
  }
}

/**
 * Runs in the thread, from its own text, so that a program in one file needs no second one: it may
 * name nothing outside itself.
 */
function hashInThread(): void {
  const { parentPort } = process.getBuiltinModule('node:worker_threads');
  const hash = process.getBuiltinModule('node:crypto').createHash('sha256');
  parentPort?.on('message', (request: HashRequest) => {
    if (request === null) {
      parentPort.postMessage(hash.digest('hex') satisfies HashResponse, []);
      return;
    }
    hash.update(request);
    parentPort.postMessage(null satisfies HashResponse, []);
  });
}
