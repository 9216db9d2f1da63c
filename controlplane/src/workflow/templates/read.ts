/** Where templates are stored, and the built-in ones. */
import { create } from '@bufbuild/protobuf';
import {
  type Actor,
  readActor,
  type Template,
  type TemplateId,
  TemplateSchema,
  store as wire,
} from '@rackwright/messages';
import { type StateStore, type StoreRevision, storeKey } from '@rackwright/store';
import { readRecord } from '../../records/index.ts';
import { builtInSources } from './built-in.ts';
import { sourceSha256 } from './derived.ts';

/** The revision of a built-in template: it was never written. */
export const builtInRevision = 0;

/** Key of a template's record. */
export function templateKey(templateId: TemplateId): string {
  return storeKey('templates', templateId);
}

/** A built-in template; undefined when there is none of this name. */
export function builtInTemplate(templateId: TemplateId): Template | undefined {
  const source = Object.hasOwn(builtInSources, templateId) ? builtInSources[templateId] : undefined;
  if (source === undefined) return undefined;
  return create(TemplateSchema, { name: `templates/${templateId}`, source, builtIn: true });
}

export interface KeptTemplate {
  readonly record: wire.TemplateRecord;
  readonly revision: StoreRevision;
}

/** The template, built-in ones included; undefined when there is none. Throws `unavailable`. */
export async function readTemplateRecord(
  store: StateStore,
  templateId: TemplateId,
): Promise<KeptTemplate | undefined> {
  const template = builtInTemplate(templateId);
  if (template !== undefined) {
    const record = create(wire.TemplateRecordSchema, { template });
    return { record, revision: builtInRevision };
  }
  return readRecord(store, wire.TemplateRecordSchema, templateKey(templateId));
}

/** A template's text, for a run. */
export interface ReadTemplate {
  readonly source: string;
  readonly digest: string;
  /** Who has last changed the source; undefined: unknown, or it comes with the control plane. */
  readonly sourceBy: Actor | undefined;
}

/** Undefined when it does not exist. */
export async function readTemplate(
  store: StateStore,
  templateId: TemplateId,
): Promise<ReadTemplate | undefined> {
  const kept = await readTemplateRecord(store, templateId);
  const source = kept?.record.template?.source;
  if (kept === undefined || source === undefined) return undefined;
  const { sourceBy } = kept.record;
  return {
    source,
    digest: sourceSha256(source),
    sourceBy: sourceBy === '' ? undefined : readActor(sourceBy),
  };
}

/** The digest of the template's source; empty when it does not exist. */
export async function readTemplateDigest(
  store: StateStore,
  templateId: TemplateId,
): Promise<string> {
  return (await readTemplate(store, templateId))?.digest ?? '';
}
