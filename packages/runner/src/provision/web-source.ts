/** An image file behind a URL, resumed where a connection broke. */
import {
  type ByteSource,
  ImageError,
  type OpenBytes,
  type ReadingLimits,
  SourceBroken,
} from '@rackwright/disk-image';
import {
  type Clock,
  parseContentRange,
  type WebAnswer,
  WebBroken,
  type WebClient,
  type WebLimits,
} from '@rackwright/platform';

export const defaultImageWebLimits: WebLimits = {
  answerTimeoutMs: 30_000,
  silenceMs: 60_000,
  headerBytesMax: 16 * 1024,
};

/** Connections in a row that bring nothing: with the pauses between them, two minutes. */
const emptyBreaksMax = 9;
const breaksMax = 256;
const pauseMsMin = 500;
const pauseMsMax = 30_000;

/** Waits longer and longer for a server that answers with nothing. */
export function patientLimits(clock: Clock): ReadingLimits {
  const pause = (count: number): Promise<void> =>
    new Promise((resolve) => {
      clock.after(Math.min(pauseMsMax, pauseMsMin * 2 ** count), resolve);
    });
  return { emptyBreaksMax, breaksMax, pause };
}

/** Connections that bring nothing to a disk that is half written: with the pauses, a day. */
const awayBreaksMax = 2_880;

/**
 * As patient as `before`. Once the disk is written to, patient until the agent stops it: the server
 * comes back with the whole file, and the disk's old content is lost already.
 */
export function readingLimitsWhileWriting(
  before: ReadingLimits,
  isWriting: () => boolean,
  signal: AbortSignal,
): ReadingLimits {
  const stopped = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
  return {
    get emptyBreaksMax() {
      return isWriting() ? awayBreaksMax : before.emptyBreaksMax;
    },
    get breaksMax() {
      return isWriting() ? awayBreaksMax : before.breaksMax;
    },
    pause: (count) => Promise.race([before.pause(count), stopped]),
  };
}

/** Answers that another try may change. */
const passingStatuses: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

/** `headers`: sent with every request; they may carry secrets. */
export function webSource(
  web: WebClient,
  url: string,
  headers: Readonly<Record<string, string>> = {},
  limits: WebLimits = defaultImageWebLimits,
): ByteSource {
  let tag: string | undefined;
  return {
    open: async (from, signal) => {
      const range: Record<string, string> = from === 0 ? {} : { range: `bytes=${from}-` };
      // Without it a file that was replaced meanwhile would be joined to the old one's beginning.
      if (from > 0 && tag !== undefined) range['if-range'] = tag;
      const requestHeaders = { ...headers, ...range, 'accept-encoding': 'identity' };
      const outcome = await web.send(
        { method: 'GET', url, headers: requestHeaders },
        limits,
        signal,
      );
      switch (outcome.kind) {
        case 'answered': {
          const opened = readAnswer(outcome, from);
          const { etag } = outcome.headers;
          tag = etag?.startsWith('W/') === false ? etag : undefined;
          return opened;
        }
        case 'cancelled':
          throw new SourceBroken('cancelled');
        case 'unreachable':
          throw new SourceBroken(outcome.message);
        case 'forbidden':
        case 'untrusted':
        case 'noHttp':
          throw new ImageError('unreachable', `the image cannot be fetched: ${outcome.message}`);
      }
    },
  };
}

function readAnswer(answer: WebAnswer, from: number): OpenBytes {
  const { status, headers } = answer;
  if (status === 200) {
    const size = sizeIn(headers['content-length']);
    return { start: 0, ...(size === undefined ? {} : { sizeBytes: size }), ...bodyOf(answer) };
  }
  const range = status === 206 ? parseContentRange(headers['content-range']) : undefined;
  if (range?.start === from) {
    const { sizeBytes } = range;
    return { start: from, ...(sizeBytes === undefined ? {} : { sizeBytes }), ...bodyOf(answer) };
  }
  answer.close();
  if (passingStatuses.has(status)) throw new SourceBroken(`the server answers ${status}`);
  throw new ImageError('unreachable', `the image cannot be fetched: the server answers ${status}`);
}

function bodyOf(answer: WebAnswer): Pick<OpenBytes, 'chunks' | 'close'> {
  const chunks = (async function* () {
    try {
      yield* answer.body;
    } catch (error) {
      if (error instanceof WebBroken) throw new SourceBroken(error.message, { cause: error });
      throw error;
    }
  })();
  return { chunks, close: () => answer.close() };
}

function sizeIn(text: string | undefined): number | undefined {
  const size = /^\d+$/.test(text ?? '') ? Number(text) : undefined;
  return Number.isSafeInteger(size) ? size : undefined;
}
