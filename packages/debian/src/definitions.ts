/**
 * Has a bundled program read the definitions of its messages from JSON. Protobuf decodes them from
 * base64 by a schema, at every start, and has to make the schema of that schema first: together a
 * tenth of an agent's start.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fromBinary } from '@bufbuild/protobuf';
import { protoCamelCase } from '@bufbuild/protobuf/reflect';
import { type DescriptorProto, FileDescriptorProtoSchema } from '@bufbuild/protobuf/wkt';
import type { Plugin } from 'esbuild';
import { fileDefinition } from './file-definition.ts';

/** Of the tree that is bundled: two clones give the same bytes. */
const runtime = 'packages/debian/src/file-definition.ts';
const specifier = 'rackwright:file-definition';
/** The module of the library that `runtime` needs: the whole of it imports definitions itself. */
const registry = 'node_modules/@bufbuild/protobuf/dist/esm/registry.js';
const call = /\bfileDesc\("([A-Za-z0-9+/=]+)"/g;

/** The plugin of esbuild. */
export const definitionsFromJson: Plugin = {
  name: 'definitions-from-json',
  setup({ onResolve, onLoad, initialOptions: { absWorkingDir = '' } }) {
    const within = (path: string) => ({ path: join(absWorkingDir, path), sideEffects: false });
    onResolve({ filter: /^rackwright:file-definition$/ }, () => within(runtime));
    onResolve({ filter: /^@bufbuild\/protobuf$/ }, ({ importer }) => {
      return importer === within(runtime).path ? within(registry) : undefined;
    });
    onLoad({ filter: /_pb\.[jt]s$/ }, async ({ path }) => {
      const source = await readFile(path, 'utf8');
      const replaced = source.replace(call, (_call, base64: string) => {
        return `${fileDefinition.name}(${JSON.stringify(definitionJson(base64))}`;
      });
      if (replaced === source) return undefined;
      const imported = `import { ${fileDefinition.name} } from '${specifier}';`;
      const contents = `${imported}\n${replaced}`;
      return { contents, loader: path.endsWith('.ts') ? 'ts' : 'js' };
    });
  },
};

/** The definitions of a file, from their base64 in generated code, for `fileDefinition`. */
export function definitionJson(base64: string): string {
  const file = fromBinary(FileDescriptorProtoSchema, Buffer.from(base64, 'base64'));
  file.messageType.forEach(nameInJson);
  return JSON.stringify(file, (key, value: unknown) => (isLeftOut(key, value) ? undefined : value));
}

/** What is the same everywhere, and options that no schema knows: they are for other programs. */
function isLeftOut(key: string, value: unknown): boolean {
  return key === '$typeName' || key === '$unknown' || (Array.isArray(value) && value.length === 0);
}

/** Generated code leaves out the names in JSON that follow from the fields' own. */
function nameInJson({ field, nestedType }: DescriptorProto): void {
  for (const one of field) {
    if (!Object.hasOwn(one, 'jsonName')) one.jsonName = protoCamelCase(one.name);
  }
  nestedType.forEach(nameInJson);
}
