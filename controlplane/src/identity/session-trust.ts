/**
 * The identity functions for agents' sessions: the bundle to trust, and the end of a session whose
 * key was revoked or whose certificate has expired.
 */
import { X509Certificate } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { agent } from '@rackwright/messages';
import { atWallTime, type Clock } from '@rackwright/platform';
import type { SessionRefusal, SessionTrust } from '../agents/index.ts';
import type { Authorities, TrustNow } from './authorities.ts';
import type { KeyRefusal } from './enrolment.ts';
import type { RackKeys } from './rack-keys.ts';
import type { TrustTiming } from './rotation.ts';

/** The present trust, and the lifetime of agents' certificates. */
export interface PresentTrust extends Pick<Authorities, 'existing' | 'onChange'> {
  readonly now: Pick<TrustNow, 'certificates' | 'caSha256'>;
  readonly timing: Pick<TrustTiming, 'agentCertificateMs'>;
}

export interface SessionTrustParts {
  readonly authorities: PresentTrust;
  readonly rackKeys: Pick<RackKeys, 'attend'>;
  readonly clock: Clock;
}

/** Agents ask for certificates of a new authority within this part of a certificate's life. */
const renewWithinPart = 1 / 20;
const renewWithinMsMax = 3_600_000;

/** The session's reasons for refusals of a key. */
const sessionReasons: Readonly<Record<KeyRefusal, SessionRefusal>> = {
  AGENT_KEY_REVOKED: 'keyRevoked',
  AGENT_KEY_REPLACED: 'keyReplaced',
  KEY_UNKNOWN: 'keyRevoked',
  RACK_UNKNOWN: 'unknownRack',
};

/** Creates it from these parts. */
export function createSessionTrust({
  authorities,
  rackKeys,
  clock,
}: SessionTrustParts): SessionTrust {
  return {
    bundle: () => {
      const { certificates, caSha256 } = authorities.now;
      const spreadMs = authorities.timing.agentCertificateMs * renewWithinPart;
      return create(agent.TrustBundleSchema, {
        certificatePem: [...certificates],
        activeCaSha256: caSha256,
        renewWithinMs: Math.floor(Math.min(spreadMs, renewWithinMsMax)),
      });
    },
    existing: (digests) => authorities.existing(digests),
    onChange: (observer) => authorities.onChange(observer),
    attend: (context, rackId, end) => {
      const certificate = context.peerCertificate();
      if (certificate === undefined) return () => undefined;
      const keySha256 = certificate.publicKeySha256;
      const leave = rackKeys.attend({
        rackId,
        keySha256,
        end: ({ reason, message }) => end(sessionReasons[reason], message),
      });
      const endsMs = new X509Certificate(certificate.der).validToDate.getTime();
      const cancel = atWallTime(clock, endsMs, () =>
        end('certificateExpired', expiredText(endsMs)),
      );
      return () => {
        cancel();
        leave();
      };
    },
  };
}

function expiredText(endsMs: number): string {
  return (
    `the certificate of this session ended at ${new Date(endsMs).toISOString()}. The agent gets ` +
    'another one by its registered key, and connects again by itself'
  );
}
