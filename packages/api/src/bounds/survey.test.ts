import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { SessionRequestSchema } from '../gen/rackwright/agent/v1/session_pb.ts';
import { HostSchema } from '../gen/rackwright/v1/host_pb.ts';
import { decodeCost, survey } from './survey.ts';

const ample = { bytesMax: 1 << 24, elementsMax: 1 << 24, unknownFieldsMax: 1 << 24 };
/** Field 15 of type varint; neither message below has it. */
const unknownField = Uint8Array.of(0x78, 0x00);

function repeated(piece: Uint8Array, times: number): Uint8Array {
  return Buffer.concat(Array.from({ length: times }, () => piece));
}

/** `inner` as field `number` of a message, both as bytes. */
function nested(number: number, inner: Uint8Array): Uint8Array {
  const length: number[] = [];
  for (let rest = inner.length; length.length === 0 || rest > 0; rest >>>= 7) {
    length.push((rest & 0x7f) | (rest >= 0x80 ? 0x80 : 0));
  }
  return Buffer.concat([Uint8Array.of((number << 3) | 2, ...length), inner]);
}

test('counts fields, elements of lists and entries of maps, in all depths', () => {
  const host = create(HostSchema, {
    name: 'hosts/h1',
    labels: { a: '1', b: '2' },
    spec: { rack: 'racks/r1', bootMacs: ['m1', 'm2', 'm3'] },
  });
  // Name, spec, rack, three addresses, and of each label itself, its key and its value.
  const found = { elements: 1 + 1 + 1 + 3 + 2 * 3, unknownFields: 0 };
  expect(survey(HostSchema, toBinary(HostSchema, host), ample)).toEqual(found);
});

test('counts what the schema does not name, in nested messages and groups too', () => {
  const unknown = repeated(unknownField, 5);
  expect(survey(HostSchema, unknown, ample)).toEqual({ elements: 0, unknownFields: 5 });
  // Field 8 of an agent's message is what it has discovered, and 4 of that an inventory.
  const deep = nested(8, nested(4, repeated(Uint8Array.of(0xf8, 0x07, 0x00), 5)));
  expect(survey(SessionRequestSchema, deep, ample)).toEqual({ elements: 2, unknownFields: 5 });
  const group = Uint8Array.of(0x7b, ...unknown, 0x7c);
  expect(survey(HostSchema, group, ample)).toEqual({ elements: 0, unknownFields: 6 });
});

test('stops at the first limit', () => {
  const bomb = repeated(unknownField, 1_900_000);
  const most = { ...ample, unknownFieldsMax: 256 };
  const excess = { what: 'unknownFields', found: 257, most: 256 };
  expect(survey(HostSchema, bomb, most)).toEqual(excess);
  const macs = nested(3, repeated(nested(3, new Uint8Array()), 500));
  const inSpec = { ...ample, elementsMax: 100 };
  const spec = HostSchema.fields.find(({ name }) => name === 'spec')?.number ?? 0;
  const bytes = nested(spec, macs.subarray(macs.length - 1_000));
  expect(survey(HostSchema, bytes, inSpec)).toMatchObject({ what: 'elements', found: 101 });
  const tooLong = survey(HostSchema, bomb, { ...ample, bytesMax: 1_000 });
  expect(tooLong).toEqual({ what: 'bytes', found: 3_800_000, most: 1_000 });
});

test('an object for two bytes weighs more than its bytes', () => {
  expect(decodeCost(200, { elements: 0, unknownFields: 100 })).toBeGreaterThan(10_000);
  expect(decodeCost(200, { elements: 1, unknownFields: 0 })).toBeLessThan(400);
});

test('never throws, and counts no less than the decoder has made', () => {
  const bytes = fc.oneof(fc.uint8Array({ maxLength: 200 }), fc.constant(unknownField));
  fc.assert(
    fc.property(fc.array(bytes, { maxLength: 5 }), (pieces) => {
      const all = Buffer.concat(pieces);
      const found = survey(HostSchema, all, ample);
      if (!('elements' in found)) throw new Error('these limits are ample');
      let host: ReturnType<typeof create<typeof HostSchema>>;
      try {
        host = fromBinary(HostSchema, all);
      } catch {
        return;
      }
      expect(found.unknownFields).toBeGreaterThanOrEqual(host.$unknown?.length ?? 0);
      const macs = host.spec?.bootMacs.length ?? 0;
      expect(found.elements).toBeGreaterThanOrEqual(macs + Object.keys(host.labels).length);
    }),
    { numRuns: 3_000 },
  );
});
