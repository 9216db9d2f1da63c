/** Every field that an agent can send, found in the descriptors. */
import type { DescField, DescMessage } from '@bufbuild/protobuf';
import { type ReflectMessage, reflect } from '@bufbuild/protobuf/reflect';
import { classes, type NameClass } from './hostile-agent-classes.ts';

/** A field that holds no message, and the way to it. */
export interface Leaf {
  /** "report.result.failed.type" */
  readonly path: string;
  readonly through: readonly DescField[];
  readonly field: DescField;
  /** Undefined: it stands in no table. */
  readonly kind: NameClass | undefined;
}

/** Messages in messages, at most; none of ours is nested so deep. */
const depthMax = 8;

export function leavesOf(desc: DescMessage): Leaf[] {
  return walk(desc, [], 0);
}

function walk(desc: DescMessage, through: readonly DescField[], depth: number): Leaf[] {
  if (depth > depthMax) throw new Error(`${desc.typeName} is nested deeper than ${depthMax}`);
  return desc.fields.flatMap((field) => {
    const path = [...through, field].map(({ name }) => name).join('.');
    const inner = messageOf(field);
    if (inner === undefined) return [{ path, through, field, kind: classOf(field) }];
    return walk(inner, [...through, field], depth + 1);
  });
}

/** What a field holds, alone or repeated; undefined: no message. */
function messageOf(field: DescField): DescMessage | undefined {
  return field.fieldKind === 'message' || field.fieldKind === 'list' || field.fieldKind === 'map'
    ? field.message
    : undefined;
}

function classOf(field: DescField): NameClass | undefined {
  const table = classes[field.parent.typeName];
  return table?.[field.name] ?? table?.['*'];
}

/** Sets a leaf of `message`, making what stands above it. */
export function setLeaf(message: ReflectMessage, { through, field }: Leaf, value: unknown): void {
  let at = message;
  for (const step of through) at = into(at, step);
  switch (field.fieldKind) {
    case 'list':
      at.get(field).add(value);
      return;
    case 'map':
      at.get(field).set('key', value);
      return;
    default:
      at.set(field, value);
  }
}

/** The message in a field, made where there is none; of several the first. */
function into(at: ReflectMessage, field: DescField): ReflectMessage {
  const inner = messageOf(field);
  if (inner === undefined || field.fieldKind === 'map') {
    throw new Error(`${field.name} holds no message that one can go into`);
  }
  if (field.fieldKind === 'list') {
    const list = at.get(field);
    if (list.size === 0) list.add(reflect(inner));
    return list.get(0) as ReflectMessage;
  }
  if (!at.isSet(field)) at.set(field, reflect(inner));
  return at.get(field) as ReflectMessage;
}
