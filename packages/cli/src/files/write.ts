/** Objects as files hold them: what `apply` accepts again. */
import { stringify } from 'yaml';
import type { ExistingObject, ObjectKind } from './kinds.ts';
import type { PlainObject } from './plain.ts';

/** An object with its kind and name in front. */
export function fileObject(kind: ObjectKind, { name, value }: ExistingObject): PlainObject {
  return { kind: kind.name, name, ...value };
}

/** YAML documents, one each. */
export function yamlText(objects: readonly PlainObject[]): string {
  return objects.map((object) => `---\n${stringify(object, { lineWidth: 0 })}`).join('');
}

/** The name of each, a line each. */
export function nameText(objects: readonly PlainObject[]): string {
  return objects.map(({ name }) => `${typeof name === 'string' ? name : ''}\n`).join('');
}

/** A list, also of one. */
export function jsonText(objects: readonly PlainObject[]): string {
  return `${JSON.stringify(objects, undefined, 2)}\n`;
}
