/**
 * Field masks of Update: which fields of a message are replaced by those of another.
 *
 * Invariants:
 * 1. Only paths of the closed list that the resource permits are applied; every other path is a
 *    violation that names it.
 * 2. A field that the mask names and the source leaves unset becomes unset: presence is respected.
 * 3. Without a mask, the fields that the source has set are meant (AIP-134).
 * 4. One entry of a permitted map is named by its key, "labels.site", or by its key in backticks,
 *    "spec.pins.`hosts/h1`" (AIP-161): the other entries stay. An entry that the source lacks is
 *    removed.
 */
import type { DescField, DescMessage, MessageShape } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import type { FieldMask } from '@bufbuild/protobuf/wkt';
import { quote, type Violations } from './violations.ts';

/** The most paths of one mask. */
const pathsMax = 64;
/** A key of a map in a path: in backticks, or plain. */
const keyShape = /^(?:`([^`]+)`|([^`]+))$/;

/** A field to replace, or one entry of a map. */
interface FieldPath {
  readonly steps: readonly string[];
  readonly key?: string;
}

/** The paths to apply. `allowed` are leaves and messages, proto names joined by ".". */
export function maskPaths<D extends DescMessage>(
  schema: D,
  mask: FieldMask | undefined,
  source: MessageShape<D>,
  allowed: readonly string[],
  violations: Violations,
): readonly string[] {
  const paths = mask?.paths ?? [];
  if (paths.length === 0) return setPaths(schema, source, allowed);
  if (paths.length > pathsMax) {
    violations.add('update_mask', `has ${paths.length} paths; at most ${pathsMax} are allowed`);
    return [];
  }
  if (paths.includes('*')) {
    if (paths.length === 1) return topmost(allowed);
    violations.add('update_mask', '"*" stands for all fields; it cannot be combined with others');
  }
  const isAllowed = (path: string) =>
    allowed.includes(path) || allowed.includes(fieldPathOf(schema, path)?.steps.join('.') ?? path);
  for (const path of paths) {
    if (path === '*' || isAllowed(path)) continue;
    const choice = `it can be "*" or one of ${allowed.join(', ')}`;
    violations.add(
      'update_mask',
      `has the path ${quote(path)}, which cannot be updated; ${choice}`,
    );
  }
  return paths.filter(isAllowed);
}

/** Replaces the fields at `paths` of `target` by those of `source` (invariant 2). */
export function applyMask<D extends DescMessage>(
  schema: D,
  target: MessageShape<D>,
  source: MessageShape<D>,
  paths: readonly string[],
): void {
  for (const path of paths) {
    const { steps, key } = fieldPathOf(schema, path) ?? { steps: path.split('.') };
    replaceAt(reflect(schema, target), reflect(schema, source), steps, key);
  }
}

/** The field or map entry of a path; undefined: it is neither. */
function fieldPathOf(schema: DescMessage, path: string): FieldPath | undefined {
  const parts = path.split('.');
  let desc: DescMessage | undefined = schema;
  for (const [index, name] of parts.entries()) {
    const field: DescField | undefined = desc?.fields.find((each) => each.name === name);
    if (field === undefined) return undefined;
    const steps = parts.slice(0, index + 1);
    if (steps.length === parts.length) return { steps };
    if (field.fieldKind === 'map') {
      // A key may contain dots: it is the rest of the path.
      const [, quoted, plain] = keyShape.exec(parts.slice(index + 1).join('.')) ?? [];
      const key = quoted ?? plain;
      return key === undefined ? undefined : { steps, key };
    }
    desc = field.fieldKind === 'message' ? field.message : undefined;
  }
  return undefined;
}

function replaceAt(
  target: ReflectMessage,
  source: ReflectMessage | undefined,
  path: readonly string[],
  key: string | undefined,
): void {
  const [name, ...rest] = path;
  const field = fieldOf(target.desc, name ?? '');
  if (rest.length > 0 && field.fieldKind === 'message') {
    const below = source?.isSet(field) ? source.get(field) : undefined;
    // Nothing to clear below a message that neither side has.
    if (below === undefined && !target.isSet(field)) return;
    const own = target.get(field);
    replaceAt(own, below, rest, key);
    target.set(field, own);
    return;
  }
  if (key !== undefined && field.fieldKind === 'map') {
    const value = source?.get(field).get(key);
    if (value === undefined) target.get(field).delete(key);
    else target.get(field).set(key, value);
    return;
  }
  if (source?.isSet(field)) target.set(field, source.get(field));
  else target.clear(field);
}

function setPaths<D extends DescMessage>(
  schema: D,
  source: MessageShape<D>,
  allowed: readonly string[],
): string[] {
  const leaves = allowed.filter((path) => !allowed.some((other) => other.startsWith(`${path}.`)));
  return leaves.filter((path) => isSetAt(reflect(schema, source), path.split('.')));
}

function isSetAt(message: ReflectMessage, [name, ...rest]: string[]): boolean {
  const field = fieldOf(message.desc, name ?? '');
  if (!message.isSet(field)) return false;
  return rest.length === 0 || field.fieldKind !== 'message' || isSetAt(message.get(field), rest);
}

function topmost(allowed: readonly string[]): string[] {
  return allowed.filter((path) => !allowed.some((other) => path.startsWith(`${other}.`)));
}

function fieldOf(desc: DescMessage, name: string): DescField {
  const field = desc.fields.find((each) => each.name === name);
  if (field === undefined) throw new Error(`${desc.typeName} has no field ${name}`);
  return field;
}
