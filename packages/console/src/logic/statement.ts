/**
 * A certificate of erasure in sections for a page: read from the very bytes that are signed. Pure.
 *
 * Invariant: a statement of an unknown form is shown unchanged, never in part.
 */
import type { OperationId } from '@rackwright/messages';
import { bytesText, grouped, span } from './format.ts';

export interface LabelledValue {
  readonly label: string;
  readonly value: string;
}

export interface StatementSection {
  readonly heading: string;
  readonly fields: readonly LabelledValue[];
}

interface StatementFields {
  readonly format: string;
  readonly host: Readonly<Record<string, string>>;
  readonly report: Readonly<Record<string, string>>;
  readonly device: Readonly<Record<string, string | number | null>>;
  readonly capacity: Readonly<Record<string, string | number>>;
  readonly methodTitle: string;
  readonly level: string | null;
  readonly standard: string;
  readonly verification: Readonly<Record<string, string | number | null>>;
  readonly verdict: Readonly<Record<string, string | number>>;
  readonly disposition: string;
  readonly startedAt: string;
  readonly endedAt: string;
  readonly bytesWritten: number;
  readonly hiddenBytesRemoved: number;
  readonly methodMs: number;
  readonly verifyMs: number;
  readonly software: Readonly<Record<string, string | null>>;
  readonly orderedBy: string;
  readonly verifiedBy: Readonly<Record<string, string>>;
  readonly useEpoch: number;
  readonly operationId: OperationId;
}

export const knownFormat = 'rackwright-erasure-certificate-2';

/** Undefined where the bytes are no statement of the known form. */
export function readStatement(bytes: Uint8Array): StatementFields | undefined {
  try {
    const value = JSON.parse(
      new TextDecoder('utf-8', { fatal: true }).decode(bytes),
    ) as StatementFields;
    return value.format === knownFormat ? value : undefined;
  } catch {
    // It is no JSON in UTF-8: the page shows the plain bytes.
    return undefined;
  }
}

/** "Erased: purge, by NVMe format" */
export function resultOf({ level, methodTitle }: StatementFields): string {
  return level === null ? 'Not proved to be erased' : `Erased: ${level}, by ${methodTitle}`;
}

type Pair = [label: string, value: unknown];

/** The sections of the page, without fields that are empty. */
export function sectionsOf(known: StatementFields): StatementSection[] {
  const sections: [string, Pair[]][] = [
    ['Device', devicePairs(known)],
    ['Host', hostPairs(known)],
    ['Erasure', erasurePairs(known)],
    ['Reading back', readingPairs(known)],
    ['Who', whoPairs(known)],
  ];
  return sections.map(([heading, fields]) => ({ heading, fields: fields.flatMap(shown) }));
}

function devicePairs(known: StatementFields): Pair[] {
  const { device, capacity } = known;
  return [
    ['Model', [device['manufacturer'], device['model']].filter(Boolean).join(' ')],
    ['Serial number', device['serial']],
    ['WWN', device['wwn']],
    ['Firmware', device['firmware']],
    ['Size', sizeOf(device['sizeBytes'])],
    ['Native size', sizeOf(capacity['nativeBytes'])],
    ['Capacity not examined', capacity['reason']],
    ['Medium', device['mediaType']],
    ['Transport', device['transport']],
    ['Certified as', device['certifiedAs']],
  ];
}

function hostPairs(known: StatementFields): Pair[] {
  const { host, useEpoch } = known;
  return [
    ['Name', host['name']],
    ['Product', [host['manufacturer'], host['product']].filter(Boolean).join(' ')],
    ['Serial number', host['serial']],
    ['Asset tag', host['assetTag']],
    ['Use', useEpoch],
  ];
}

function erasurePairs(known: StatementFields): Pair[] {
  const {
    level,
    methodTitle,
    standard,
    startedAt,
    endedAt,
    methodMs,
    bytesWritten,
    hiddenBytesRemoved,
    disposition,
  } = known;
  return [
    ['Level', level],
    ['Method', methodTitle],
    ['Standard', standard],
    ['Began', startedAt],
    ['Ended', endedAt],
    ['Erasing took', span(methodMs)],
    ['Written', bytesText(bytesWritten)],
    ['Hidden capacity freed', bytesOrNothing(hiddenBytesRemoved)],
    ['Disposition', disposition],
  ];
}

function readingPairs(known: StatementFields): Pair[] {
  const { verification, verdict, verifyMs } = known;
  return [
    ['Verdict', verdict['kind']],
    ['Reason', verdict['reason']],
    ['Level', verification['level']],
    ['Places read', numberOf(verdict['placesRead'])],
    ['Bytes read', sizeOf(verdict['bytesRead'])],
    ['Reading took', span(verifyMs)],
  ];
}

function whoPairs(known: StatementFields): Pair[] {
  const { report, software, verifiedBy, orderedBy, operationId } = known;
  return [
    ['Organisation', report['organisation']],
    ['Customer', report['customer']],
    ['Technician', report['technician']],
    ['Ordered by', orderedBy],
    ['Software', software['version']],
    ['Key of the agent (SHA-256)', verifiedBy['agentKeySha256']],
    ['Operation', operationId],
  ];
}

function shown([label, value]: [string, unknown]): LabelledValue[] {
  if (typeof value === 'number') return [{ label, value: grouped(value) }];
  return typeof value === 'string' && value !== '' ? [{ label, value }] : [];
}

function sizeOf(value: unknown): string {
  return typeof value === 'number' ? `${bytesText(value)} (${grouped(value)} bytes)` : '';
}

function numberOf(value: unknown): string {
  return typeof value === 'number' ? grouped(value) : '';
}

function bytesOrNothing(value: number): string {
  return value > 0 ? bytesText(value) : '';
}

/**
 * The two numbers of an ECDSA P-256 signature in DER (RFC 3279 §2.2.3) as 64 bytes, as browsers
 * take it (IEEE P1363). Undefined for anything else.
 */
export function rawSignature(der: Uint8Array): Uint8Array<ArrayBuffer> | undefined {
  const raw = new Uint8Array(64);
  if (der[0] !== 0x30 || der[1] !== der.length - 2) return undefined;
  let at = 2;
  for (const offset of [0, 32]) {
    const length = der[at + 1] ?? 0;
    if (der[at] !== 0x02 || length === 0) return undefined;
    let digits = der.subarray(at + 2, at + 2 + length);
    if (digits.length !== length) return undefined;
    while (digits.length > 32 && digits[0] === 0) digits = digits.subarray(1);
    if (digits.length > 32) return undefined;
    raw.set(digits, offset + 32 - digits.length);
    at += 2 + length;
  }
  return at === der.length ? raw : undefined;
}

/** The bytes in a PEM block. */
export function pemBytes(pem: string): Uint8Array<ArrayBuffer> {
  const base64 = pem.replaceAll(/-----[^-]+-----|\s/g, '');
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}
