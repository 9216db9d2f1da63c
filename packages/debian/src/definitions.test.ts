import { readFileSync } from 'node:fs';
import {
  create,
  type DescEnum,
  type DescField,
  type DescFile,
  type DescMessage,
  type DescService,
  fromBinary,
  toBinary,
  toJson,
} from '@bufbuild/protobuf';
import { agent, runner, store } from '@rackwright/messages';
import { expect, test } from 'vitest';
import { definitionJson } from './definitions.ts';
import { fileDefinition } from './file-definition.ts';

const roots = [agent.JournalRecordSchema, runner.HelloSchema, store.HostRecordSchema];
const files = new Map<string, DescFile>();
for (const { file } of roots) collect(file);

/** A file after those that it imports. */
function collect(file: DescFile): void {
  for (const imported of file.dependencies) collect(imported);
  files.set(file.name, file);
}

/** What protobuf reads of definitions when it encodes and decodes. */
function shapeOf({ edition, dependencies, messages, enums, services }: DescFile) {
  return {
    edition,
    dependencies: dependencies.map(({ name }) => name),
    messages: messages.map(messageShape),
    enums: enums.map(enumShape),
    services: services.map(serviceShape),
  };
}

function messageShape(message: DescMessage): unknown {
  const { typeName, fields, members, oneofs, nestedMessages, nestedEnums } = message;
  return {
    typeName,
    fields: fields.map(fieldShape),
    members: members.map(({ kind, localName }) => [kind, localName]),
    oneofs: oneofs.map((oneof) => [oneof.name, oneof.fields.map(({ name }) => name)]),
    nested: [...nestedMessages.map(messageShape), ...nestedEnums.map(enumShape)],
  };
}

function fieldShape(field: DescField): unknown {
  const isPlain = (value: unknown) => typeof value !== 'object' && typeof value !== 'function';
  const plain = Object.entries(field).filter(([, value]) => isPlain(value));
  const { message, enum: ofEnum, oneof } = field;
  return {
    ...Object.fromEntries(plain),
    types: [message?.typeName, ofEnum?.typeName, oneof?.name],
  };
}

function enumShape({ typeName, open, sharedPrefix, values }: DescEnum): unknown {
  const shapes = values.map(({ name, localName, number, jsonName }) => {
    return { name, localName, number, jsonName };
  });
  return { typeName, open, sharedPrefix, values: shapes };
}

function serviceShape({ typeName, methods }: DescService): unknown {
  return {
    typeName,
    methods: methods.map(({ name, localName, methodKind, input, output, idempotency }) => {
      return [name, localName, methodKind, input.typeName, output.typeName, idempotency];
    }),
  };
}

function base64Of(name: string): string {
  const folder = name.startsWith('google/')
    ? new URL('wkt/', import.meta.resolve('@bufbuild/protobuf'))
    : new URL('../../messages/src/gen/', import.meta.url);
  const end = name.startsWith('google/') ? 'js' : 'ts';
  const source = readFileSync(new URL(`${name}_pb.${end}`, folder), 'utf8');
  return /fileDesc\("([^"]+)"/.exec(source)?.[1] ?? '';
}

/** Made as a bundle does it, from generated code. */
function remade(): Map<string, DescFile> {
  const made = new Map<string, DescFile>();
  for (const [name, { dependencies }] of files) {
    const imports = dependencies.flatMap((one) => made.get(one.name) ?? []);
    made.set(name, fileDefinition(definitionJson(base64Of(name)), imports));
  }
  return made;
}

test('a bundle has the definitions that generated code has, of every file', () => {
  const made = remade();
  expect(made.size).toBeGreaterThan(20);
  for (const [name, file] of made) {
    const known = files.get(name);
    expect(file.messages.length + file.enums.length, name).toBeGreaterThan(0);
    expect(shapeOf(file), name).toEqual(known === undefined ? undefined : shapeOf(known));
  }
});

test('the files of a bundle import each other', () => {
  const made = remade();
  const links = [...made.values()].flatMap(({ dependencies }) => dependencies);
  expect(links.length).toBeGreaterThan(20);
  for (const imported of links) expect(imported === made.get(imported.name)).toBe(true);
});

test('what one kind of definitions encodes, the other decodes', () => {
  const { typeName, file } = store.HostRecordSchema;
  const found = remade()
    .get(file.name)
    ?.messages.find((one) => one.typeName === typeName);
  const host = { name: 'hosts/h1', labels: { site: 'x' }, status: { useEpoch: 2n, faults: [{}] } };
  const bytes = toBinary(store.HostRecordSchema, create(store.HostRecordSchema, { host }));
  if (found === undefined) throw new Error(`there is no ${typeName}`);
  const decoded = fromBinary(found, bytes);
  expect(toJson(found, decoded)).toEqual(
    toJson(store.HostRecordSchema, fromBinary(store.HostRecordSchema, bytes)),
  );
  expect(toBinary(found, decoded)).toEqual(bytes);
});
