/** A web that is a function, for tests: requests go in, and answers come back piece by piece. */
import { WebBroken, type WebClient, type WebOutcome, type WebRequest } from '@rackwright/platform';

export interface Page {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** The connection breaks after so many bytes of the body. */
  readonly breaksAfter?: number;
}

/** Every request that was sent is kept in `requests`. */
export function pagesWeb(answer: (request: WebRequest) => Page | WebOutcome): {
  readonly web: WebClient;
  readonly requests: WebRequest[];
} {
  const requests: WebRequest[] = [];
  const send = async (request: WebRequest, _: unknown, signal?: AbortSignal) => {
    if (signal?.aborted === true) return { kind: 'cancelled' } as const;
    requests.push(request);
    const page = answer(request);
    if ('kind' in page) return page;
    const { status = 200, headers = {}, body = '', breaksAfter } = page;
    const chunks = bodyOf(Buffer.from(body), breaksAfter);
    return { kind: 'answered', status, headers, body: chunks, close: () => {} } as const;
  };
  return { web: { send }, requests };
}

const pieceBytes = 1_000;

async function* bodyOf(bytes: Buffer, breaksAfter: number | undefined) {
  const end = Math.min(bytes.length, breaksAfter ?? bytes.length);
  for (let at = 0; at < end; at += pieceBytes) {
    yield new Uint8Array(bytes.subarray(at, Math.min(end, at + pieceBytes)));
  }
  if (breaksAfter !== undefined) throw new WebBroken('the connection was cut');
}

/** A page with a range of `bytes`, as a registry serves blobs. */
export function rangePage(bytes: Uint8Array, range: string | undefined): Page {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
  if (start === 0) return { body: bytes };
  const contentRange = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
  return {
    status: 206,
    headers: { 'content-range': contentRange },
    body: bytes.subarray(start),
  };
}
