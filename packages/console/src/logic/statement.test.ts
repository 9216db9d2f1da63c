/** What a certificate says is read from the very bytes that are signed, or not at all. */
import { generateKeyPairSync, sign, verify } from 'node:crypto';
import { expect, test } from 'vitest';
import { knownFormat, pemBytes, rawSignature, readStatement } from './statement.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const content = Buffer.from('a statement');

test('a signature in DER is the same one as browsers take it, whatever its numbers', () => {
  const lengths = new Set<number>();
  for (let round = 0; round < 200; round += 1) {
    const der = sign('sha256', content, privateKey);
    lengths.add(der.length);
    const raw = rawSignature(der);
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' } as const;
    expect(raw && verify('sha256', content, key, raw)).toBe(true);
  }
  expect(lengths.size).toBeGreaterThan(1);
});

test('bytes that are no DER signature are refused', () => {
  const der = sign('sha256', content, privateKey);
  const cut = der.subarray(0, -1);
  const longer = Buffer.concat([der, Buffer.of(0)]);
  const other = Buffer.from(der);
  other[0] = 0x31;
  for (const bytes of [Buffer.of(), cut, longer, other, Buffer.alloc(70, 0x30)]) {
    expect(rawSignature(bytes)).toBeUndefined();
  }
});

test('a key in PEM is the bytes in it', () => {
  const pem = publicKey.export({ type: 'spki', format: 'pem' }).toString();
  const der = publicKey.export({ type: 'spki', format: 'der' });
  expect(Buffer.compare(pemBytes(pem), der)).toBe(0);
});

test('a statement of another form is not read as one that is known', () => {
  const bytes = (value: unknown) => Buffer.from(JSON.stringify(value));
  expect(readStatement(bytes({ format: knownFormat, level: 'purge' }))?.level).toBe('purge');
  expect(readStatement(bytes({ format: 'rackwright-erasure-certificate-9' }))).toBeUndefined();
  expect(readStatement(Buffer.from('{"format":'))).toBeUndefined();
  expect(readStatement(Uint8Array.of(0xff, 0xfe))).toBeUndefined();
});
