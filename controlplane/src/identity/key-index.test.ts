import { create } from '@bufbuild/protobuf';
import { sha256Hex, store as wire } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { AgentKeyIndex } from './key-index.ts';

const [first, second] = [new Uint8Array([1]), new Uint8Array([2])];

function record(agentPublicKey: Uint8Array, ...past: readonly Uint8Array[]): wire.RackRecord {
  const revokedKeys = past.map((key) => ({ keySha256: Buffer.from(sha256Hex(key), 'hex') }));
  return create(wire.RackRecordSchema, { agentPublicKey, revokedKeys });
}

test('a key is found by the rack that has it now, or else by the one that had it', () => {
  const index = new AgentKeyIndex();
  expect(index.rackOf(sha256Hex(first))).toBeUndefined();
  index.note('r1', record(first));
  expect(index.rackOf(sha256Hex(first))).toBe('r1');
  index.note('r1', record(second, first));
  expect(index.rackOf(sha256Hex(second))).toBe('r1');
  expect(index.rackOf(sha256Hex(first))).toBe('r1');
  index.note('r2', record(first));
  expect(index.rackOf(sha256Hex(first))).toBe('r2');
});

test('a rack that is gone, or has no agent any more, has no registered key', () => {
  const index = new AgentKeyIndex();
  index.note('r1', record(first, second));
  index.note('r1', record(new Uint8Array()));
  expect(index.rackOf(sha256Hex(first))).toBeUndefined();
  expect(index.rackOf(sha256Hex(second))).toBeUndefined();
  index.note('r1', record(first, second));
  index.note('r1', undefined);
  expect(index.rackOf(sha256Hex(first))).toBeUndefined();
  expect(index.rackOf(sha256Hex(second))).toBeUndefined();
});

test('a rack that lets go of a key does not take it from the one that has it since', () => {
  const index = new AgentKeyIndex();
  index.note('r1', record(first));
  index.note('r2', record(first));
  index.note('r1', undefined);
  expect(index.rackOf(sha256Hex(first))).toBe('r2');
});
