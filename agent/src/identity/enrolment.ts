import { timestampMs } from '@bufbuild/protobuf/wkt';
import {
  type ApiErrorKind,
  ApiFailure,
  agent,
  parseJoinToken,
  type RackName,
  signCertificateProof,
} from '@rackwright/messages';
import type { Clock, Random } from '@rackwright/platform';
import { diagnose } from './diagnosis.ts';
import type { AgentIdentity, AgentKeyPair } from './identity.ts';

/** The platform interfaces that enrolment uses. */
export interface EnrolmentParts {
  readonly clock: Clock;
  readonly random: Random;
}

const nonceBytes = 32;
const probeTimeoutMs = 10_000;
const callTimeoutMs = 15_000;

/**
 * First contact: the token's fingerprint picks the control plane's CA out of the chain that the
 * server shows; the secret goes only over the connection that this CA then proves.
 */
export async function join(
  parts: EnrolmentParts,
  key: AgentKeyPair,
  enrolmentAddress: string,
  token: string,
): Promise<AgentIdentity> {
  const parsed = parseJoinToken(token);
  if (parsed === undefined) throw new Error('this is no join token: copy the whole of it');
  const { host, port } = splitAddress(enrolmentAddress);
  const { clock } = parts;
  const probe = { host, port, sha256: parsed.caSha256, timeoutMs: probeTimeoutMs, clock };
  const { fetchPinnedCertificate } = await import('../rpc.ts');
  const caPem = await fetchPinnedCertificate(probe);
  return issue(parts, key, { enrolmentAddress, caPem, joinToken: parsed.secretPart, rack: '' });
}

/** A new certificate for the registered key; works after expiry as well. */
export function renew(
  parts: EnrolmentParts,
  key: AgentKeyPair,
  identity: AgentIdentity,
): Promise<AgentIdentity> {
  const { enrolmentAddress, caCertificatePem: caPem, certificatePem, rack } = identity;
  return issue(parts, key, { enrolmentAddress, caPem, joinToken: '', rack, certificatePem });
}

/** The failures of a call without a connection. */
const unanswered: readonly ApiErrorKind[] = ['unavailable', 'deadlineExceeded'];

interface Issue {
  readonly enrolmentAddress: string;
  readonly caPem: string;
  readonly joinToken: string;
  /** "racks/RACK" of a renewal. */
  readonly rack: RackName;
  readonly certificatePem?: string;
}

/** A failure on the way to the control plane is reported together with its visible state. */
async function issue(
  parts: EnrolmentParts,
  key: AgentKeyPair,
  wanted: Issue,
): Promise<AgentIdentity> {
  try {
    return await ask(parts, key, wanted);
  } catch (cause) {
    if (!(cause instanceof ApiFailure) || !unanswered.includes(cause.error.kind)) throw cause;
    const { host, port } = splitAddress(wanted.enrolmentAddress);
    const why = await diagnose({ ...wanted, clock: parts.clock, host, port });
    if (why === undefined) throw cause;
    throw new Error(`no certificate: ${why}`, { cause });
  }
}

async function ask(
  { clock, random }: EnrolmentParts,
  key: AgentKeyPair,
  { enrolmentAddress, caPem, joinToken, rack }: Issue,
): Promise<AgentIdentity> {
  const { connect, createClient } = await import('../rpc.ts');
  const channel = connect({ target: enrolmentAddress, caPem });
  try {
    const nonce = random.bytes(nonceBytes);
    const { publicKeyDer: publicKey, privateKey, privateKeyPem } = key;
    const signature = signCertificateProof(privateKey, publicKey, nonce);
    const client = createClient(agent.EnrolmentService, channel);
    const askedMs = clock.nowMs();
    const answer = await client.issueCertificate(
      { publicKey, nonce, signature, joinToken, rack },
      { deadlineMs: askedMs + callTimeoutMs, waitForReady: true },
    );
    if (answer.expireTime === undefined || answer.agentEndpoint === '') {
      throw new Error(
        "the control plane's answer has no expire_time or agent_endpoint: install the same version",
      );
    }
    // By our own clock, also when it is wrong: only the length of the certificate's life counts.
    const issuedAtMs = clock.nowMs();
    const serverMs = answer.issueTime === undefined ? issuedAtMs : timestampMs(answer.issueTime);
    return {
      privateKeyPem,
      certificatePem: answer.certificatePem,
      caCertificatePem: answer.caCertificatePem || caPem,
      rack: answer.rack,
      enrolmentAddress,
      agentEndpoint: answer.agentEndpoint,
      issuedAtMs,
      expiresAtMs: issuedAtMs + timestampMs(answer.expireTime) - serverMs,
      clockOffsetMs: serverMs - issuedAtMs,
    };
  } finally {
    channel.close();
  }
}

/**
 * Whether the control plane reports that this key was revoked or replaced: it is never accepted
 * again.
 */
export function isKeyOver(cause: unknown): boolean {
  if (!(cause instanceof ApiFailure)) return false;
  return ['AGENT_KEY_REVOKED', 'AGENT_KEY_REPLACED'].includes(cause.error.reason);
}

/** "host:port", "1.2.3.4:port" or "[::1]:port". */
export function splitAddress(address: string): { readonly host: string; readonly port: number } {
  const match = /^(?:\[([0-9a-f:.]+)\]|([^:[\]]+)):(\d{1,5})$/i.exec(address.trim());
  const port = Number(match?.[3] ?? 0);
  const host = match?.[1] ?? match?.[2];
  if (host === undefined || port < 1 || port > 65_535) {
    throw new Error(`${JSON.stringify(address)} is no address: write host:port`);
  }
  return { host, port };
}
