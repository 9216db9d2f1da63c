/** Templates as they are stored and shown, for every call. */
import { clone, create, fromBinary } from '@bufbuild/protobuf';
import {
  invalidArgument,
  notFound,
  type Template,
  type TemplateId,
  TemplateSchema,
  store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import { requireName } from '../../call/names.ts';
import type { RpcDependencies } from '../../call/ports.ts';
import { formatPosition } from '../../call/position.ts';
import { hasApplied, orUnavailable, readRecord } from '../../records/index.ts';
import {
  builtInTemplate,
  derive,
  type KeptTemplate,
  readTemplateRecord,
  templateKey,
} from '../templates/index.ts';

export type TemplatesDependencies = Pick<
  RpcDependencies,
  'store' | 'clock' | 'random' | 'log' | 'actor'
>;

/** The template of this name, built-in ones included. Throws `notFound`. */
export async function existing(deps: TemplatesDependencies, name: string): Promise<KeptTemplate> {
  const kept = await readTemplateRecord(deps.store, requireName('templates', name));
  if (kept === undefined) throw notFound(name);
  return kept;
}

/** With the fields derived from its source. */
export function present(
  { store }: TemplatesDependencies,
  record: wire.TemplateRecord,
  revision: StoreRevision,
): Template {
  const { template } = record;
  const shown = derive(template ? clone(TemplateSchema, template) : create(TemplateSchema));
  shown.etag = shown.builtIn ? '' : formatPosition(store, revision);
  return shown;
}

/** A person's template; undefined when there is none. */
export function existingOr({ store }: TemplatesDependencies, templateId: TemplateId) {
  return readRecord(store, wire.TemplateRecordSchema, templateKey(templateId));
}

/** The last template of this name, when it was deleted and this request was applied to it. */
export async function deletedTemplateOfRequest(
  { store }: TemplatesDependencies,
  templateId: TemplateId,
  id: string | undefined,
): Promise<KeptTemplate | undefined> {
  if (id === undefined) return undefined;
  const changes = await orUnavailable(store.history(templateKey(templateId)));
  const last = changes.findLast((change) => change.kind === 'put');
  if (last === undefined) return undefined;
  const record = fromBinary(wire.TemplateRecordSchema, last.value);
  return hasApplied(record, id) ? { record, revision: last.revision } : undefined;
}

/** The template that the same request deleted before, also when a new one has its name since. */
export async function deletedBefore(
  { store }: TemplatesDependencies,
  templateId: TemplateId,
  id: string | undefined,
): Promise<KeptTemplate | undefined> {
  if (id === undefined) return undefined;
  const changes = await orUnavailable(store.history(templateKey(templateId)));
  for (const [index, last] of changes.entries()) {
    if (last.kind !== 'put' || changes[index + 1]?.kind !== 'delete') continue;
    const record = fromBinary(wire.TemplateRecordSchema, last.value);
    if (hasApplied(record, id)) return { record, revision: last.revision };
  }
  return undefined;
}

/** Throws `invalidArgument` for a built-in template. */
export function refuseBuiltIn(templateId: TemplateId, field = 'template.name'): void {
  if (builtInTemplate(templateId) === undefined) return;
  const description =
    'names a template that comes with the control plane and cannot be changed; ' +
    'create one of your own from its source';
  throw invalidArgument([{ field, description }]);
}
