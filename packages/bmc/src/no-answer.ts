/** The cause when a device gives no answer by HTTPS. */
import type { HttpsOutcome } from '@rackwright/platform';
import { type BmcFailed, type BmcTransient, failed, transient } from './driver.ts';

type NoAnswer = Exclude<HttpsOutcome, { kind: 'answered' }>;

/** The device that was asked, as messages call it, and the advice when it speaks no TLS. */
export interface AskedDevice {
  readonly name: 'the BMC' | 'the device';
  readonly noTlsRemedy: string;
  /** The outcome's own words, fit to be shown. */
  readonly textOf: (message: string) => string;
}

export function noAnswer(
  outcome: NoAnswer,
  { name, noTlsRemedy, textOf }: AskedDevice,
): BmcFailed | BmcTransient {
  switch (outcome.kind) {
    case 'certificateRefused': {
      const { pinned, shown } = outcome;
      const remedy = 'if its certificate was replaced on purpose, pin the new one';
      const message = `${name} shows another certificate than the pinned one: ${remedy}`;
      const both = `pinned SHA-256 ${pinned}, shown ${shown}`;
      return { ...failed('certificate', message, both), shownCertificateSha256: shown };
    }
    case 'noTls': {
      const message = `what answers does not speak TLS: ${noTlsRemedy}`;
      return failed('protocol', message, textOf(outcome.message));
    }
    case 'noHttp': {
      const message = 'what answers does not speak HTTP, or says too much';
      return failed('protocol', message, textOf(outcome.message));
    }
    case 'unknownName': {
      const message = `the address of ${name} cannot be resolved, or is internal: correct it`;
      return failed('address', message, textOf(outcome.message));
    }
    case 'broken':
    case 'timedOut':
      return transient('unreachable', `${name} does not answer`, textOf(outcome.message));
    case 'cancelled':
      return transient('cancelled', 'the call was given up');
  }
}
