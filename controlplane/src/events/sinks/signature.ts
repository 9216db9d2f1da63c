/**
 * Signatures of requests to webhooks, by the Standard Webhooks specification 1.0.0 (`webhook-id`,
 * `webhook-timestamp`, `webhook-signature` with HMAC-SHA256).
 */
import { createHmac } from 'node:crypto';

const secretPrefix = 'whsec_';
const keyBytesMin = 24;
const keyBytesMax = 64;
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * The key in a secret, "whsec_" and base64 of 24 to 64 bytes; undefined: the secret has another
 * form.
 */
export function signingKey(secret: string): Uint8Array | undefined {
  const text = secret.slice(secretPrefix.length);
  if (!secret.startsWith(secretPrefix) || !base64.test(text)) return undefined;
  const key = Buffer.from(text, 'base64');
  return key.length >= keyBytesMin && key.length <= keyBytesMax ? new Uint8Array(key) : undefined;
}

/** The required form of a secret, for messages. */
export const secretForm = '"whsec_" and base64 of 24 to 64 random bytes';

/** The headers that sign a message of this id, sent at this time. */
export function signatureHeaders(
  key: Uint8Array,
  id: string,
  nowMs: number,
  body: Uint8Array,
): Readonly<Record<string, string>> {
  const timestamp = String(Math.floor(nowMs / 1_000));
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body);
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature.digest('base64')}`,
  };
}
