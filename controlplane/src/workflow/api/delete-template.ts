/** DeleteTemplate: refused while workflows of it exist, unless their runs are to be kept. */
import {
  counted,
  type DeleteTemplateRequest,
  failedPrecondition,
  notFound,
  type Template,
  type TemplateId,
  store as wire,
} from '@rackwright/messages';
import type { StoreRevision } from '@rackwright/store';
import { requireName } from '../../call/names.ts';
import { checkEtag, etagMismatch } from '../../call/position.ts';
import { checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import {
  appliedId,
  deleteRecord,
  hasApplied,
  orUnavailable,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { type KeptTemplate, templateKey } from '../templates/index.ts';
import {
  deletedBefore,
  existingOr,
  present,
  refuseBuiltIn,
  type TemplatesDependencies,
} from './template-view.ts';

/** The most workflows that a refusal to delete their template names. */
const workflowsNamedMax = 5;

/** Handles one DeleteTemplate. */
export async function deleteTemplate(
  deps: TemplatesDependencies,
  { name, etag, keepRuns, requestId }: DeleteTemplateRequest,
): Promise<Template> {
  const templateId = requireName('templates', name);
  refuseBuiltIn(templateId, 'name');
  const violations = new Violations();
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  const id = appliedId('delete', requestId);
  const before = await deletedBefore(deps, templateId, id);
  if (before !== undefined) return present(deps, before.record, before.revision);
  const kept = await existingOr(deps, templateId);
  if (kept === undefined) throw notFound(name);
  const { record } = kept;
  // A deletion that began under this id is finished regardless of the etag: its begin was written.
  const begun = hasApplied(record, id);
  if (!begun) checkEtag(deps.store, etag, kept.revision, name);
  if (keepRuns !== true) await refuseWithWorkflows(deps, templateId);
  const revision = begun ? kept.revision : await markDeleted(deps, templateId, kept, id);
  const gone = await deleteRecord(deps, templateKey(templateId), revision);
  if (gone.kind === 'conflict') throw etagMismatch(name);
  deps.log.info({ template: name, actor: deps.actor }, 'template deleted');
  return present(deps, record, revision);
}

/**
 * The last revision of the deleted template names the request, so that a repeated request gets the
 * same response.
 */
async function markDeleted(
  deps: TemplatesDependencies,
  templateId: TemplateId,
  { record, revision }: KeptTemplate,
  id: string | undefined,
): Promise<StoreRevision> {
  if (id === undefined) return revision;
  record.requestIds = withApplied(record.requestIds, id);
  const key = templateKey(templateId);
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, record, revision);
  if (written.kind === 'conflict') throw etagMismatch(`templates/${templateId}`);
  return written.revision;
}

async function refuseWithWorkflows(
  { store }: TemplatesDependencies,
  templateId: TemplateId,
): Promise<void> {
  const { entries } = await orUnavailable(store.list('workflows'));
  const names = entries
    .map(({ key }) => key.split('.'))
    .filter(([, , template, ...rest]) => template === templateId && rest.length === 0)
    .map(([, host, template]) => `hosts/${host}/workflows/${template}`);
  if (names.length === 0) return;
  const named = names.slice(0, workflowsNamedMax).join(', ');
  const more = names.length > workflowsNamedMax ? ', …' : '';
  throw failedPrecondition(
    'TEMPLATE_IN_USE',
    `templates/${templateId} is used by ${counted(names.length, 'workflow')}: ${named}${more}. ` +
      'Delete them first, or keep their runs (keep_runs).',
  );
}
