/** Shared by drivers over HTTP: the address of a device, and its credential. */

/** One device and the credential to reach it with. Lives in memory only. */
export interface HttpTarget {
  /** IPv4 or IPv6 address, or a name. */
  readonly address: string;
  /** 1–65535. */
  readonly port: number;
  /** The only certificate to accept, SHA-256 of the DER; undefined before one is known. */
  readonly certificateSha256: string | undefined;
  readonly user: string;
  readonly password: string;
  /** Credential name and version, for the governor and for messages. Never the secret. */
  readonly credential: string;
}

/** Whether the address is valid in a URL: nothing of it is cut short or misread. */
export function isAddress(text: string): boolean {
  return /^[0-9a-z.:_-]{1,253}$/i.test(text);
}

/** The address as the host of a URL (RFC 3986 §3.2.2). */
export function urlHost(address: string): string {
  return address.includes(':') ? `[${address}]` : address;
}
