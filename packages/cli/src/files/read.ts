/**
 * Files of objects: YAML documents, each an object or a list of objects; JSON is YAML too.
 *
 * Invariants:
 * 1. An unknown field is refused with its line and column and the nearest name; all problems of a
 *    file are reported at once.
 * 2. Fields that the control plane sets itself (uid, etag, times, status) may be in a file, so that
 *    the `-o json` output of other commands can be used; they are left out by name. Such an object
 *    gives its kind by its name, and numbers of 64 bits as texts.
 * 3. No secret is in a file: a password is named by the file or the variable that holds it.
 */
import { type DescField, type DescMessage, ScalarType } from '@bufbuild/protobuf';
import { errorText, nearestName } from '@rackwright/platform';
import { isAlias, isMap, isScalar, isSeq, type Node, type YAMLMap } from 'yaml';
import { fullName, kindNamed, kindNames, kinds, nameShape, type ObjectKind } from './kinds.ts';
import { enumWord, messageFrom, type Plain, type PlainObject, plainOf } from './plain.ts';
import { readShort } from './short-values.ts';
import { listed, type TextPosition, writtenAs, type YamlProblem, YamlText } from './yaml.ts';

/** Largest file, in bytes. */
export const fileBytesMax = 16 * 1024 * 1024;
const objectsMax = 10_000;

/** The source of a password. */
export type PasswordSource =
  | { readonly kind: 'file'; readonly path: string }
  | { readonly kind: 'env'; readonly variable: string };

/** One object of a file. */
export interface FileObject extends TextPosition {
  readonly kind: ObjectKind;
  readonly name: string;
  readonly value: PlainObject;
  readonly password?: PasswordSource;
  /** Fields that are left out (invariant 2). */
  readonly ignored: readonly string[];
  /** The position of each field, by names as in the file: "spec.windows[0].cron". */
  readonly positions: ReadonlyMap<string, TextPosition>;
}

export type ReadFile =
  | { readonly kind: 'ok'; readonly objects: readonly FileObject[] }
  | { readonly kind: 'bad'; readonly problems: readonly YamlProblem[] };

/** Reads a whole file. */
export function readObjects(text: string): ReadFile {
  const reader = new Reader(text);
  const objects = reader.objects();
  const { isSound, problems } = reader.yaml;
  return isSound ? { kind: 'ok', objects } : { kind: 'bad', problems };
}

/**
 * The position of the field of a violation, "pool.spec.windows[0].time_zone"; of a field that the
 * file leaves out, the nearest position around it.
 */
export function positionOfField(
  { positions, line, column }: FileObject,
  field: string,
): TextPosition {
  const path = field.replaceAll('"', '').replace(/_([a-z])/g, (_, c: string) => c.toUpperCase());
  for (let rest of [path, path.slice(path.indexOf('.') + 1)]) {
    while (rest !== '') {
      const position = positions.get(rest);
      if (position !== undefined) return position;
      rest = rest.slice(0, Math.max(0, rest.lastIndexOf('.'), rest.lastIndexOf('[')));
    }
  }
  return { line, column };
}

const madeByServer = ['uid', 'etag', 'createTime', 'updateTime', 'status'];

class Reader {
  readonly yaml: YamlText;
  /** The positions of the object that is being read. */
  #positions = new Map<string, TextPosition>();
  /** Fields beside its spec. */
  #topFields: readonly string[] = [];

  constructor(text: string) {
    this.yaml = new YamlText(text, fileBytesMax);
  }

  objects(): FileObject[] {
    const nodes = this.yaml.documents().flatMap(listed);
    if (nodes.length > objectsMax) {
      const message = `has ${nodes.length} objects; at most ${objectsMax} are read at once`;
      this.yaml.tellAt({ line: 1, column: 1 }, message);
      return [];
    }
    const objects = nodes.map((node) => this.#object(node)).filter((each) => each !== undefined);
    this.#checkTwice(objects);
    return objects;
  }

  #object(node: Node): FileObject | undefined {
    if (!isMap(node)) {
      this.#wrong(node, 'is no object; write kind, name and what belongs to it');
      return undefined;
    }
    const kind = this.#kind(node);
    const name = kind === undefined ? undefined : this.#name(node, kind);
    if (kind === undefined || name === undefined) return undefined;
    this.#positions = new Map();
    this.#topFields = kind.fields;
    const found: Record<string, Plain> = {};
    const ignored: string[] = [];
    let password: PasswordSource | undefined;
    for (const [key, keyNode, value] of this.yaml.entries(node)) {
      if (key === 'kind' || key === 'name') continue;
      if (madeByServer.includes(key)) ignored.push(key);
      else if (key === 'password' && kind.name === 'Credential') password = this.#password(value);
      else if (kind.fields.includes(key)) {
        const field = kind.schema.fields.find(({ jsonName }) => jsonName === key);
        const plain = field === undefined ? undefined : this.#field(field, value, key);
        if (plain !== undefined) found[key] = plain;
      } else {
        const known = ['kind', 'name', ...kind.fields];
        if (kind.name === 'Credential') known.push('password');
        this.#unknown(keyNode, key, known);
      }
    }
    const value = this.#canonical(node, kind, found);
    if (value === undefined) return undefined;
    const position = this.yaml.positionOf(node);
    const positions = this.#positions;
    return {
      kind,
      name,
      value,
      ignored,
      positions,
      ...(password ? { password } : {}),
      ...position,
    };
  }

  #kind(node: YAMLMap): ObjectKind | undefined {
    const given = node.get('kind', true);
    if (given === undefined) {
      const name = String(node.get('name'));
      const named = kinds.find((kind) => nameShape(kind).test(name));
      if (named !== undefined) return named;
      this.#wrong(node, `has no kind; write one of ${kindNames.join(', ')}`);
      return undefined;
    }
    const kind = isScalar(given) ? kindNamed(String(given.value)) : undefined;
    if (kind !== undefined) return kind;
    const text = isScalar(given) ? String(given.value) : '';
    const hint = nearest(text, kindNames);
    this.#wrong(given, `kind is "${text}"; it must be one of ${kindNames.join(', ')}${hint}`);
    return undefined;
  }

  #name(node: YAMLMap, kind: ObjectKind): string | undefined {
    const given = node.get('name', true);
    if (given === undefined && kind.name === 'Fleet') return 'fleet';
    const text = isScalar(given) && typeof given.value === 'string' ? given.value : '';
    const name = fullName(kind, text);
    if (nameShape(kind).test(name)) return name;
    const example =
      kind.name === 'Workflow' ? 'hosts/HOST/workflows/TEMPLATE' : `${kind.collection}/ID, or ID`;
    const wanted = kind.name === 'Fleet' ? 'fleet' : example;
    this.#wrong(given ?? node, `name is "${text}"; it must be ${wanted}`);
    return undefined;
  }

  #password(node: Node | null): PasswordSource | undefined {
    const [file, env] = isMap(node) ? [node.get('file'), node.get('env')] : [];
    const count = isMap(node) ? node.items.length : 0;
    if (count === 1 && typeof file === 'string' && file !== '') return { kind: 'file', path: file };
    if (count === 1 && typeof env === 'string' && env !== '') {
      return { kind: 'env', variable: env };
    }
    // The value here may be the password itself: it is not repeated.
    this.#wrong(
      node,
      'password must be {file: PATH} or {env: VARIABLE}; no secret stands in a file',
    );
    return undefined;
  }

  #field(field: DescField, node: Node | null, path: string): Plain | undefined {
    if (isAlias(node)) return this.#wrong(node, `${path} is an alias (*); write it out`);
    if (node !== null) this.#positions.set(path, this.yaml.positionOf(node));
    if (node === null || (isScalar(node) && node.value === null)) {
      return this.#wrong(node, `${path} is empty; leave it out, or give it a value`);
    }
    switch (field.fieldKind) {
      case 'message':
        return this.#message(field.message, node, path);
      case 'list':
        if (!isSeq(node)) return this.#wrong(node, `${path} must be a list`);
        return (node.items as Node[]).map(
          (item, at) => this.#member(field, item, `${path}[${at}]`) ?? '',
        );
      case 'map': {
        if (!isMap(node)) return this.#wrong(node, `${path} must be names and values`);
        const found: Record<string, Plain> = {};
        for (const [key, , value] of this.yaml.entries(node)) {
          const plain = this.#member(field, value, `${path}[${key}]`);
          if (plain !== undefined) found[key] = plain;
        }
        return found;
      }
      default:
        return this.#scalar(field, node, path);
    }
  }

  #member(field: DescField, node: Node | null, path: string): Plain | undefined {
    if (isAlias(node)) return this.#wrong(node, `${path} is an alias (*); write it out`);
    if (node !== null) this.#positions.set(path, this.yaml.positionOf(node));
    return field.message === undefined
      ? this.#scalar(field, node, path)
      : this.#message(field.message, node, path);
  }

  #message(desc: DescMessage, node: Node | null, path: string): Plain | undefined {
    const short = readShort(desc, isScalar(node) ? node.value : undefined);
    if (short?.kind === 'ok') return short.plain;
    if (short !== undefined) {
      const given = isScalar(node) ? `is "${writtenAs(node)}"; it ` : '';
      return this.#wrong(node, `${path} ${given}must be ${short.right}`);
    }
    if (!isMap(node)) return this.#wrong(node, `${path} must be an object`);
    for (const { fields } of desc.oneofs) {
      const given = fields.map(({ jsonName }) => jsonName).filter((name) => node.has(name));
      if (given.length > 1)
        this.#wrong(node, `${path} has ${given.join(' and ')}; give one of them`);
    }
    const found: Record<string, Plain> = {};
    for (const [key, keyNode, value] of this.yaml.entries(node)) {
      const field = desc.fields.find(({ jsonName }) => jsonName === key);
      if (field === undefined) {
        this.#unknown(
          keyNode,
          `${path}.${key}`,
          desc.fields.map(({ jsonName }) => jsonName),
        );
        continue;
      }
      const plain = this.#field(field, value, `${path}.${key}`);
      if (plain !== undefined) found[key] = plain;
    }
    return found;
  }

  #scalar(field: DescField, node: Node | null, path: string): Plain | undefined {
    const value = isScalar(node) ? node.value : undefined;
    if (field.enum !== undefined) {
      const words = field.enum.values
        .filter(({ number }) => number !== 0)
        .map(({ localName }) => enumWord(localName));
      if (typeof value === 'string' && words.includes(value)) return value;
      // The full name, as in JSON; the unspecified value counts as unset.
      const full = field.enum.values.find(({ name }) => name === value);
      if (full !== undefined) return full.number === 0 ? undefined : enumWord(full.localName);
      const hint = nearest(String(value), words);
      return this.#wrong(node, `${path} must be one of ${words.join(', ')}${hint}`);
    }
    const wanted = scalarKind(field);
    if (wanted === 'text' && typeof value === 'string') return value;
    if (wanted === 'true or false' && typeof value === 'boolean') return value;
    const number = is64Bit(field) && /^[0-9]{1,16}$/.test(String(value)) ? Number(value) : value;
    if (wanted === 'a whole number' && Number.isSafeInteger(number) && Number(number) >= 0) {
      return Number(number);
    }
    const quoted = wanted === 'text' && isScalar(node) ? `: write "${writtenAs(node)}"` : '';
    return this.#wrong(node, `${path} must be ${wanted}${quoted}`);
  }

  /** The value as `get` would print it, so that both can be compared. */
  #canonical(node: Node, kind: ObjectKind, found: PlainObject): PlainObject | undefined {
    if (!this.yaml.isSound) return undefined;
    try {
      return plainOf(kind.schema, messageFrom(kind.schema, found), kind.fields);
    } catch (error) {
      this.#wrong(node, errorText(error));
      return undefined;
    }
  }

  #checkTwice(objects: readonly FileObject[]): void {
    const first = new Map<string, FileObject>();
    for (const object of objects) {
      const before = first.get(object.name);
      first.set(object.name, before ?? object);
      if (before === undefined) continue;
      this.yaml.tellAt(object, `${object.name} stands in line ${before.line} already`);
    }
  }

  #unknown(node: Node, path: string, known: readonly string[]): void {
    const hint = nearest(path.slice(path.lastIndexOf('.') + 1), known);
    const beside = nearestName(path.slice(path.lastIndexOf('.') + 1), this.#topFields);
    const isNested = path.includes('.') && hint === '' && beside !== undefined;
    const problem = isNested ? `; ${beside} stands beside ${path.split('.', 1)[0]}` : '';
    this.#wrong(node, `unknown field ${path}${hint}${problem}`);
  }

  #wrong(node: Node | null, message: string): undefined {
    return this.yaml.wrong(node, message);
  }
}

function nearest(given: string, known: readonly string[]): string {
  const name = nearestName(given, known);
  return name === undefined ? '' : `; did you mean ${name}?`;
}

/** Which JSON has as text. */
function is64Bit({ scalar }: DescField): boolean {
  return scalar === ScalarType.UINT64 || scalar === ScalarType.INT64;
}

function scalarKind({ scalar }: DescField): string {
  switch (scalar) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return 'text';
    case ScalarType.BOOL:
      return 'true or false';
    default:
      return 'a whole number';
  }
}
