/** Why a control plane was not reached: its visible state, and what to do. */
import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { ApiFailure } from '@rackwright/messages';
import { probeCertificates } from '@rackwright/rpc';
import type { CommandIo } from './command-io.ts';
import { ServerUnreachable } from './failure.ts';

/** Somebody waits for the sentence. */
const probeTimeoutMs = 3_000;
const pemBlock = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g;

/** The server that was to be reached. */
export interface UnreachedServer {
  /** "HOST:PORT" */
  readonly server: string;
  readonly caPem: string;
  readonly caFile: string;
}

/** The same error, or one that says why nothing was reached; what a server says itself stays. */
export async function explainUnreached(
  io: CommandIo,
  wanted: UnreachedServer,
  error: unknown,
): Promise<unknown> {
  // Every refusal of a control plane has a reason; without one no control plane has answered.
  if (!(error instanceof ApiFailure) || error.error.reason !== '') return error;
  const { server } = wanted;
  if (error.error.kind === 'deadlineExceeded') {
    const text = `${server} did not answer in time. It may be busy or cut off: try again`;
    return new ServerUnreachable(`${text}, and check --server`, { cause: error });
  }
  if (error.error.kind !== 'unavailable') return error;
  const { host, port } = partsOf(server);
  const probe = { host, port, timeoutMs: probeTimeoutMs, clock: io.clock };
  const chain = await probeCertificates(probe);
  const why = chain === undefined ? undefined : whyNotTrusted(wanted, chain, io.clock.nowMs());
  const toDo = 'Check --server, and that it runs there';
  const text = why ?? `no control plane answers at ${server}. ${error.message}. ${toDo}`;
  return new ServerUnreachable(text, { cause: error });
}

/** The problem of the certificate that is shown; undefined: none. Pure. */
export function whyNotTrusted(
  { server, caPem, caFile }: UnreachedServer,
  chain: readonly X509Certificate[],
  nowMs: number,
): string | undefined {
  const [leaf] = chain;
  if (leaf === undefined) return undefined;
  const trusted = (caPem.match(pemBlock) ?? []).map((pem) => new X509Certificate(pem));
  const isSigned = chain.some((shown) =>
    trusted.some(
      (authority) =>
        shown.fingerprint256 === authority.fingerprint256 ||
        (shown.checkIssued(authority) && shown.verify(authority.publicKey)),
    ),
  );
  if (!isSigned) {
    return (
      `${server} shows a certificate that ${caFile} did not sign; ` +
      'is this the right --ca-file, and the right --server?'
    );
  }
  const [from, until] = [leaf.validFromDate, leaf.validToDate];
  if (nowMs < from.getTime() || nowMs > until.getTime()) {
    const good = `good from ${from.toISOString()} to ${until.toISOString()}`;
    const now = `this machine’s clock says ${new Date(nowMs).toISOString()}`;
    return `the certificate of ${server} is ${good}, and ${now}; set the clock that is wrong`;
  }
  const { host } = partsOf(server);
  const isFor = isIP(host) === 0 ? leaf.checkHost(host) : leaf.checkIP(host);
  if (isFor !== undefined) return undefined;
  return (
    `the certificate of ${server} is for ${leaf.subjectAltName ?? 'no name'}, not for ${host}; ` +
    'give --server as one of these'
  );
}

/** The parts of "host:port" or "[::1]:port". */
function partsOf(server: string): { readonly host: string; readonly port: number } {
  const at = server.lastIndexOf(':');
  return { host: server.slice(0, at).replace(/^\[|\]$/g, ''), port: Number(server.slice(at + 1)) };
}
