/**
 * The text of a join token: what an operator carries from the control plane to a new agent.
 *
 *     rwj1.<SHA-256 of the CA certificate, 64 hex digits>.<rack id>.<secret, 43 base64url>
 *
 * The fingerprint lets the agent recognize the control plane before it has any root; everything
 * behind it is the secret part, which goes to the server as `join_token`.
 */
import type { RackId } from '../ids.ts';

const prefix = 'rwj1';
const shape = /^rwj1\.([0-9a-f]{64})\.([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?\.[A-Za-z0-9_-]{43})$/;
const secretShape = /^([a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)\.([A-Za-z0-9_-]{43})$/;

/** Bytes of the secret; 43 characters as unpadded base64url. */
export const joinSecretBytes = 32;

export interface JoinTokenParts {
  /** SHA-256 of the CA certificate (DER), lower-case hex. */
  readonly caSha256: string;
  /** "<rack id>.<secret>": sent as `IssueCertificateRequest.join_token`. */
  readonly secretPart: string;
}

/** The parts of a token text; undefined when it is none (cut, mistyped, another thing). */
export function parseJoinToken(text: string): JoinTokenParts | undefined {
  const match = shape.exec(text.trim());
  if (match === null) return undefined;
  const [, caSha256, secretPart] = match;
  return caSha256 === undefined || secretPart === undefined ? undefined : { caSha256, secretPart };
}

/** The rack id and the secret of a secret part; undefined when it is none. */
export function parseJoinSecret(
  secretPart: string,
): { readonly rackId: RackId; readonly secret: string } | undefined {
  const match = secretShape.exec(secretPart);
  if (match === null) return undefined;
  const [, rackId, secret] = match;
  return rackId === undefined || secret === undefined ? undefined : { rackId, secret };
}

/** The text of a token for rack `rackId` with `secret`, `joinSecretBytes` random bytes. */
export function formatJoinToken(caSha256: string, rackId: RackId, secret: Uint8Array): string {
  return `${prefix}.${caSha256}.${rackId}.${Buffer.from(secret).toString('base64url')}`;
}
