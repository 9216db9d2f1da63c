/** rackwright get: resources as files, which `apply` accepts again. */
import { nearestName } from '@rackwright/platform';
import { buildCommand } from '@stricli/core';
import { briefs } from '../../briefs.ts';
import type { CliContext } from '../../command-io.ts';
import { UsageError } from '../../failure.ts';
import { type FileClients, fileClients } from '../../files/clients.ts';
import { fullName, kinds, nameShape, type ObjectKind } from '../../files/kinds.ts';
import type { PlainObject } from '../../files/plain.ts';
import { fileObject, jsonText, nameText, yamlText } from '../../files/write.ts';
import { connectionFlags } from '../../flags.ts';
import { type ConnectionFlags, openConnection } from '../../settings.ts';
import { withClient } from '../frame/calls.ts';

interface GetFlags extends ConnectionFlags {
  readonly output: keyof typeof forms;
}

export const getFile = buildCommand({
  docs: {
    brief: briefs.get,
    fullDescription:
      'Prints what people say of racks, credentials (without passwords), the fleet, templates, ' +
      'expected-hosts, hosts, pools or workflows, or of all of them. `rackwright apply -f` ' +
      'accepts it again, and finds nothing to change. Built-in templates are left out of lists.',
  },
  parameters: {
    flags: {
      ...connectionFlags,
      output: {
        kind: 'enum',
        values: ['yaml', 'json', 'name'],
        default: 'yaml',
        brief: 'Form of the output',
      },
    },
    positional: {
      kind: 'tuple',
      parameters: [
        { parse: String, brief: 'Kind, as hosts, or all', placeholder: 'kind' },
        { parse: String, optional: true, brief: 'Name or id of one', placeholder: 'name' },
      ],
    },
    aliases: { o: 'output' },
  },
  async func(this: CliContext, flags: GetFlags, kindText: string, name?: string) {
    const wanted = wantedKinds(kindText);
    const [one] = wanted;
    if (name !== undefined && (wanted.length > 1 || one === undefined)) {
      throw new UsageError('a name needs its kind, as in `get host h1`');
    }
    const objects = await withClient(openConnection(this.io, flags), fileClients, (clients) =>
      name === undefined || one === undefined ? allOf(clients, wanted) : oneOf(clients, one, name),
    );
    this.io.out.write(forms[flags.output](objects));
  },
});

const forms = { yaml: yamlText, json: jsonText, name: nameText } as const;

async function allOf(clients: FileClients, wanted: readonly ObjectKind[]): Promise<PlainObject[]> {
  const objects: PlainObject[] = [];
  for (const kind of wanted) {
    for (const existing of await kind.list(clients)) objects.push(fileObject(kind, existing));
  }
  return objects;
}

async function oneOf(
  clients: FileClients,
  kind: ObjectKind,
  given: string,
): Promise<PlainObject[]> {
  const name = fullName(kind, given);
  if (!nameShape(kind).test(name)) {
    const example = kind.name === 'Workflow' ? 'hosts/HOST/workflows/TEMPLATE' : 'an id';
    throw new UsageError(`the name is "${given}"; it must be ${example}`);
  }
  return [fileObject(kind, await kind.get(clients, name))];
}

/** "host", "hosts", "Host", "expected-hosts", "expectedHosts" or "all". */
function wantedKinds(text: string): readonly ObjectKind[] {
  if (text === 'all') return kinds;
  const plain = (word: string) => word.toLowerCase().replaceAll('-', '').replace(/s$/, '');
  const found = kinds.find(({ name }) => plain(name) === plain(text));
  if (found !== undefined) return [found];
  const known = [...kinds.map(({ collection }) => kebab(collection)), 'all'];
  const hint = nearestName(text, known);
  throw new UsageError(
    `the kind is "${text}"; it must be one of ${known.join(', ')}` +
      (hint === undefined ? '' : `; did you mean ${hint}?`),
  );
}

function kebab(collection: string): string {
  return collection.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
