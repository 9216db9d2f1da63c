import { create, type DescMessage, fromBinary, type Message, toBinary } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { HostSchema, NvmeControllerSchema, StorageDeviceSchema } from '@rackwright/messages';
import * as agent from '@rackwright/messages/agent';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { weighMessage } from '../wire/codec.ts';
import { decodeCost, surveyMessage } from './survey.ts';

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

test('the survey counts fields, elements of lists and entries of maps, in all depths', () => {
  const host = create(HostSchema, {
    name: 'hosts/h1',
    labels: { a: '1', b: '2' },
    spec: { rack: 'racks/r1', bootMacs: ['m1', 'm2', 'm3'] },
  });
  // Name, spec, rack, three addresses, and of each label itself, its key and its value.
  const found = { elements: 1 + 1 + 1 + 3 + 2 * 3, unknownFields: 0 };
  expect(surveyMessage(HostSchema, toBinary(HostSchema, host), ample)).toEqual(found);
});

test('the survey counts unknown fields, in nested messages and groups too', () => {
  const unknown = repeated(unknownField, 5);
  expect(surveyMessage(HostSchema, unknown, ample)).toEqual({ elements: 0, unknownFields: 5 });
  // Field 8 of an agent's message is a finding of a discovery, and field 4 of that an inventory.
  const deep = nested(8, nested(4, repeated(Uint8Array.of(0xf8, 0x07, 0x00), 5)));
  expect(surveyMessage(agent.SessionRequestSchema, deep, ample)).toEqual({
    elements: 2,
    unknownFields: 5,
  });
  const group = Uint8Array.of(0x7b, ...unknown, 0x7c);
  expect(surveyMessage(HostSchema, group, ample)).toEqual({ elements: 0, unknownFields: 6 });
});

test('the survey stops at the first limit', () => {
  const bomb = repeated(unknownField, 1_900_000);
  const most = { ...ample, unknownFieldsMax: 256 };
  const excess = { limit: 'unknownFields', found: 257, most: 256 };
  expect(surveyMessage(HostSchema, bomb, most)).toEqual(excess);
  const macs = nested(3, repeated(nested(3, new Uint8Array()), 500));
  const inSpec = { ...ample, elementsMax: 100 };
  const spec = HostSchema.fields.find(({ name }) => name === 'spec')?.number ?? 0;
  const bytes = nested(spec, macs.subarray(macs.length - 1_000));
  expect(surveyMessage(HostSchema, bytes, inSpec)).toMatchObject({ limit: 'elements', found: 101 });
  const tooLong = surveyMessage(HostSchema, bomb, { ...ample, bytesMax: 1_000 });
  expect(tooLong).toEqual({ limit: 'bytes', found: 3_800_000, most: 1_000 });
});

test('an object for two bytes weighs more than its bytes', () => {
  expect(decodeCost(200, { elements: 0, unknownFields: 100 })).toBeGreaterThan(10_000);
  expect(decodeCost(200, { elements: 1, unknownFields: 0 })).toBeLessThan(400);
});

/** What a decoder made: elements of lists and maps, and unknown fields, in all depths. */
function made(schema: DescMessage, message: Message): { elements: number; unknown: number } {
  const found = { elements: 0, unknown: message.$unknown?.length ?? 0 };
  const add = (inner: DescMessage, value: Message) => {
    const { elements, unknown } = made(inner, value);
    found.elements += elements;
    found.unknown += unknown;
  };
  const reflected = reflect(schema, message);
  for (const field of schema.fields) {
    if (!reflected.isSet(field)) continue;
    if (field.fieldKind === 'message') add(field.message, reflected.get(field).message);
    if (field.fieldKind === 'list') {
      const list = reflected.get(field);
      found.elements += list.size;
      if (field.listKind !== 'message') continue;
      for (const each of list) add(field.message, (each as ReflectMessage).message);
    }
    if (field.fieldKind === 'map') {
      const map = reflected.get(field);
      found.elements += map.size;
      if (field.mapKind !== 'message') continue;
      for (const each of map.values()) add(field.message, (each as ReflectMessage).message);
    }
  }
  return found;
}

/**
 * Bytes as a peer may send them: tags of any wire type, each before a value that may match it or
 * not.
 */
const pieces = fc.oneof(
  fc.uint8Array({ maxLength: 30 }),
  fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.nat(7), fc.uint8Array({ maxLength: 12 }))
    .map(([number, wireType, value]) => tagged(number, wireType, value)),
  fc
    .tuple(fc.integer({ min: 1, max: 20 }), fc.uint8Array({ maxLength: 40 }))
    .map(([number, value]) => nested(number, value)),
  fc.constant(unknownField),
);

function tagged(number: number, wireType: number, value: Uint8Array): Uint8Array {
  const tag = (number << 3) | wireType;
  const bytes = tag < 0x80 ? [tag] : [(tag & 0x7f) | 0x80, tag >>> 7];
  return Uint8Array.of(...bytes, ...value);
}

test.each([HostSchema, agent.SessionRequestSchema, StorageDeviceSchema])(
  'the survey counts no less than the decoder makes, of what it follows to the end: %s',
  (schema) => {
    fc.assert(
      fc.property(fc.array(pieces, { maxLength: 6 }), (parts) => {
        const all = Buffer.concat(parts);
        const found = surveyMessage(schema, all, ample);
        if (found === 'malformed') return;
        if ('limit' in found) throw new Error('these limits are ample');
        let message: Message;
        try {
          message = fromBinary(schema, all);
        } catch {
          return;
        }
        const { elements, unknown } = made(schema, message);
        expect(found.unknownFields).toBeGreaterThanOrEqual(unknown);
        expect(found.elements).toBeGreaterThanOrEqual(elements);
      }),
      { numRuns: 5_000 },
    );
  },
);

describe('is malformed, whatever a decoder makes of it', () => {
  const host = (name: string) =>
    HostSchema.fields.find((field) => field.name === name)?.number ?? 0;
  const bomb = repeated(unknownField, 1_000);

  test.each([
    ['a known field with the end of a group before it', tagged(host('name'), 4, Uint8Array.of(0))],
    ['a text as a varint', tagged(host('name'), 0, Uint8Array.of(0))],
    ['a message as a varint', tagged(host('spec'), 0, Uint8Array.of(0x7f))],
    ['a map as 32 bits', tagged(host('labels'), 5, Uint8Array.of(0, 0, 0, 0))],
    ['the value of an entry as a varint', nested(host('labels'), Uint8Array.of(0x10, 0x00))],
    ['a field that reaches behind its message', nested(host('spec'), Uint8Array.of(0x0a, 0x7f))],
    ['a wire type that does not exist', tagged(host('name'), 6, Uint8Array.of(0))],
    ['a varint without an end', Uint8Array.of(0x78, ...new Uint8Array(12).fill(0xff))],
  ])('%s is malformed', (_, start) => {
    expect(surveyMessage(HostSchema, Buffer.concat([start, bomb]), ample)).toBe('malformed');
  });

  test('a message deeper than anybody nests them is malformed', () => {
    let inner: Uint8Array = new Uint8Array();
    for (let depth = 0; depth < 70; depth += 1) inner = Uint8Array.of(0x7b, ...inner, 0x7c);
    expect(surveyMessage(HostSchema, inner, ample)).toBe('malformed');
  });

  test('a packed list whose last number reaches behind it is malformed', () => {
    const { number = 0 } =
      NvmeControllerSchema.fields.find(({ name }) => name === 'hidden_namespaces') ?? {};
    const packed = (bytes: number[]) => nested(number, Uint8Array.from(bytes));
    expect(surveyMessage(NvmeControllerSchema, packed([1, 2, 3]), ample)).toMatchObject({
      elements: 4,
    });
    expect(surveyMessage(NvmeControllerSchema, packed([1, 2, 0x80]), ample)).toBe('malformed');
  });
});

test('a refusal of bytes that are no message names the message', () => {
  const bytes = tagged(1, 4, Uint8Array.of(0));
  const limits = { ...ample, unknownFields: 'skipped' } as const;
  expect(() => weighMessage(HostSchema, bytes, limits)).toThrow(/no rackwright.v1.Host; encode it/);
});
