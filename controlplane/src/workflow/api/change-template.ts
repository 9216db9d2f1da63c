/** CreateTemplate and UpdateTemplate: a source is parsed as a whole before anything is stored. */
import { clone, create, equals } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import {
  alreadyExists,
  type CreateTemplateRequest,
  invalidArgument,
  sourceProblemText,
  type Template,
  TemplateSchema,
  type UpdateTemplateRequest,
  store as wire,
} from '@rackwright/messages';
import { randomId } from '@rackwright/platform';
import { parseTemplate } from '@rackwright/template';
import { applyMask, maskPaths } from '../../call/field-mask.ts';
import { idProblem, nameProblem, requireName } from '../../call/names.ts';
import { checkEtag } from '../../call/position.ts';
import { checkLabels, checkRequestId } from '../../call/texts.ts';
import { Violations } from '../../call/violations.ts';
import {
  appliedId,
  hasApplied,
  untilWritten,
  withApplied,
  writeRecord,
} from '../../records/index.ts';
import { builtInPrefix, type KeptTemplate, templateKey, underived } from '../templates/index.ts';
import {
  deletedTemplateOfRequest,
  existing,
  existingOr,
  present,
  refuseBuiltIn,
  type TemplatesDependencies,
} from './template-view.ts';

const updatablePaths = ['labels', 'source'];
/** The most problems of one source that are reported; trailers are bounded. */
const problemsShownMax = 30;

/** Handles one CreateTemplate. */
export async function createTemplate(
  deps: TemplatesDependencies,
  request: CreateTemplateRequest,
): Promise<Template> {
  const { requestId } = request;
  const given = request.template ?? create(TemplateSchema);
  const violations = new Violations();
  violations.addIf('template_id', newIdProblem(request.templateId));
  checkRequestId(requestId, violations);
  if (given.name !== '') {
    violations.addIf('template.name', nameProblem('templates', given.name));
  }
  checkTemplate(given, violations);
  violations.throwIfAny();
  const name = `templates/${request.templateId}`;
  const templateId = requireName('templates', name, 'template_id');
  const id = appliedId('create', requestId);
  const before =
    (await existingOr(deps, templateId)) ?? (await deletedTemplateOfRequest(deps, templateId, id));
  if (before !== undefined) return sameTemplate(deps, before, name, id);
  const time = timestampFromMs(deps.clock.nowMs());
  const template = { name, uid: randomId(deps.random), createTime: time, updateTime: time };
  const record = create(wire.TemplateRecordSchema, {
    template: { ...template, labels: { ...given.labels }, source: given.source },
    requestIds: withApplied([], id),
    sourceBy: deps.actor,
  });
  if (request.validateOnly) return present(deps, record, 0);
  const key = templateKey(templateId);
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, record, 'absent');
  if (written.kind === 'conflict') {
    return sameTemplate(deps, await existing(deps, name), name, id);
  }
  deps.log.info({ template: name, actor: deps.actor }, 'template created');
  return present(deps, record, written.revision);
}

/** The template that an earlier try of the same request made; any other one is a conflict. */
function sameTemplate(
  deps: TemplatesDependencies,
  { record, revision }: KeptTemplate,
  name: string,
  id: string | undefined,
): Template {
  if (!hasApplied(record, id)) throw alreadyExists(`${name} exists already.`);
  return present(deps, record, revision);
}

/** Handles one UpdateTemplate. */
export async function updateTemplate(
  deps: TemplatesDependencies,
  request: UpdateTemplateRequest,
): Promise<Template> {
  const { template: wanted, requestId } = request;
  if (wanted === undefined) {
    const description = 'is missing; give its name and what changes';
    throw invalidArgument([{ field: 'template', description }]);
  }
  refuseBuiltIn(requireName('templates', wanted.name, 'template.name'));
  const violations = new Violations();
  checkRequestId(requestId, violations);
  violations.throwIfAny();
  return untilWritten(wanted.name, () => tryUpdate(deps, request, wanted));
}

/** Undefined when another writer was first. */
async function tryUpdate(
  deps: TemplatesDependencies,
  { updateMask, validateOnly, requestId }: UpdateTemplateRequest,
  wanted: Template,
): Promise<Template | undefined> {
  const { record, revision } = await existing(deps, wanted.name);
  const id = appliedId('update', requestId);
  if (hasApplied(record, id)) return present(deps, record, revision);
  checkEtag(deps.store, wanted.etag, revision, wanted.name);
  const violations = new Violations();
  const paths = maskPaths(TemplateSchema, updateMask, wanted, updatablePaths, violations);
  const next = clone(wire.TemplateRecordSchema, record);
  const template = next.template ?? create(TemplateSchema, { name: wanted.name });
  // An unfinished deletion is void once something has changed.
  next.requestIds = next.requestIds.filter((each) => !each.startsWith('delete:'));
  next.template = underived(template);
  applyMask(TemplateSchema, template, wanted, paths);
  checkTemplate(template, violations);
  violations.throwIfAny();
  const changes = !equals(wire.TemplateRecordSchema, record, next);
  if (validateOnly === true || !changes) return present(deps, next, revision);
  template.updateTime = timestampFromMs(deps.clock.nowMs());
  if (template.source !== record.template?.source) next.sourceBy = deps.actor;
  next.requestIds = withApplied(next.requestIds, id);
  const key = templateKey(requireName('templates', wanted.name));
  const written = await writeRecord(deps, wire.TemplateRecordSchema, key, next, revision);
  if (written.kind === 'conflict') return undefined;
  deps.log.info({ template: wanted.name, actor: deps.actor }, 'template changed');
  return present(deps, next, written.revision);
}

/** What is wrong with the id of a new template; undefined when it is fine. */
function newIdProblem(id: string): string | undefined {
  const problem = idProblem(id);
  if (problem !== undefined) return problem;
  return id.startsWith(builtInPrefix)
    ? `must not begin with "${builtInPrefix}"; those come with the control plane`
    : undefined;
}

function checkTemplate({ labels, source }: Template, violations: Violations): void {
  checkLabels('template.labels', labels, violations);
  const parsed = parseTemplate(source);
  if (parsed.kind === 'ok') return;
  const { problems } = parsed;
  for (const problem of problems.slice(0, problemsShownMax)) {
    violations.add('template.source', sourceProblemText(problem));
  }
  const [first] = problems.slice(problemsShownMax);
  if (first === undefined) return;
  const message = `${problems.length - problemsShownMax} more problems begin here`;
  violations.add('template.source', sourceProblemText({ ...first, message }));
}
