/**
 * Makes the definitions of a .proto file in a bundled program: the plugin `definitions.ts` calls
 * this in place of protobuf's `fileDesc`.
 */
import { createFileRegistry, type DescFile } from '@bufbuild/protobuf';
import type {
  DescriptorProto,
  FieldDescriptorProto,
  FileDescriptorProto,
} from '@bufbuild/protobuf/wkt';

/** A message as JSON has it: without lists that are empty. */
type Stored<M> = {
  -readonly [K in keyof M]: M[K] extends readonly unknown[] ? M[K] | undefined : M[K];
};

/** What protobuf reads of a field without looking whether it is set; a label of 1: no list. */
const fieldDefaults = {
  ...{ label: 1, typeName: '', extendee: '', defaultValue: '' },
  ...{ oneofIndex: 0, jsonName: '', proto3Optional: false },
};

/** `json`: of `definitionJson`; `imports`: the files that it imports, in its order. */
export function fileDefinition(json: string, imports: readonly DescFile[] = []): DescFile {
  const file = JSON.parse(json) as Stored<FileDescriptorProto>;
  file.$typeName = 'google.protobuf.FileDescriptorProto';
  file.dependency = imports.map(({ proto }) => proto.name);
  file.messageType = (file.messageType ?? []).map(message);
  file.enumType ??= [];
  file.extension ??= [];
  file.service ??= [];
  const find = (name: string) => {
    const found = imports.find(({ proto }) => proto.name === name);
    return found && withoutImports(found);
  };
  const made = createFileRegistry(file as FileDescriptorProto, find).getFile(file.name);
  if (made === undefined) throw new Error(`${file.name} has no definitions`);
  made.dependencies.splice(0, made.dependencies.length, ...imports);
  return made;
}

/**
 * For the registry of a file that imports it. A registry takes in what its files import, and what
 * those do, by every path: a third of the work. No file of ours has a public import, so each names
 * its own imports only.
 */
function withoutImports(file: DescFile): DescFile {
  return Object.create(file, { dependencies: { value: [] } }) as DescFile;
}

function message(stored: Stored<DescriptorProto>): DescriptorProto {
  const { field = [], nestedType = [], enumType = [], oneofDecl = [], extension = [] } = stored;
  const fields = field.map((one) =>
    Object.assign(Object.create(fieldDefaults) as FieldDescriptorProto, one),
  );
  const lists = { field: fields, nestedType: nestedType.map(message), enumType, oneofDecl };
  return Object.assign(stored, { ...lists, extension }) as DescriptorProto;
}
